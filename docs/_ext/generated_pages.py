"""Pages that are made from the package itself: the API's lists of names, the commands' help, and the catalogue of methods."""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

from made_pages import write_if_changed

from trueonline import catalog
from trueonline.cli import COMMANDS

DOCS = Path(__file__).parent.parent
API = DOCS / "reference" / "api"
HELP = DOCS / "reference" / "commands"
MODULES = {
    "trueonline": "Learners, and the functions that most programs need",
    "trueonline.control": "Agents, policies and Gymnasium environments",
    "trueonline.control.atari": "Atari games",
    "trueonline.features": "From states and observations to features",
    "trueonline.problems": "Markov reward processes with exact values",
    "trueonline.problems.counterexamples": "The counterexample with two states, `problems.off_policy.two_state`",
    "trueonline.study": "Sweeps",
    "trueonline.streams": "Predictions from streams",
    "trueonline.streams.sources": "Sources of streams",
    "trueonline.derivation": "A forward view in, a backward view out",
    "trueonline.nonlinear": "Non-linear value functions",
    "trueonline.deep": "Streaming deep RL",
    "trueonline.forward": "The definitions of methods, slow and obvious",
}
COSTS = {
    "one": "active features; one trace",
    "two": "active features; two weight vectors",
    "three": "active features; two weight vectors, three traces",
    "two traces": "active features; two traces",
    "two traces and usage": "active features; two traces, and the usage of features",
    "two and usage": "features with trace; two weight vectors, and the usage of features",
    "three and usage": "active features; two weight vectors, three traces, and the usage of features",
    "meta-gradient": "features with trace; one trace, two traces of the meta-gradient",
}


def write_pages(app: Any, config: Any) -> None:
    """Write the pages before Sphinx looks for them. A page that did not change is left alone, and is not built again."""
    for module, title in MODULES.items():
        write_if_changed(API / f"{module}.md", api_page(module, title))
    for old in (API / "generated").glob("*.rst"):  # a name that is gone leaves no page behind
        module, _, name = old.stem.rpartition(".")
        if module not in MODULES or name not in _names(module):
            old.unlink()
    write_if_changed(API / "index.md", api_index())
    for name in COMMANDS:
        write_if_changed(HELP / f"{name}.md", command_page(name))
    write_if_changed(HELP / "index.md", commands_page())
    write_if_changed(DOCS / "methods" / "catalogue.md", catalogue_page())
    # The pages did not exist when Sphinx listed its sources, so autosummary has to be told where to look for names.
    config.autosummary_generate = [str(API / f"{module}.md") for module in MODULES]


def api_index() -> str:
    """The list of modules, each with what is in it."""
    lines = ["# API", "", "Every public name, made from the docstrings.", "", "| module | what is in it |", "|---|---|"]
    lines += [f"| [`{module}`]({module}.md) | {title} |" for module, title in MODULES.items()]
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *MODULES, "```", ""])


def api_page(module: str, title: str) -> str:
    """One module: what is in it, and a table of its public names that links to a page for each."""
    home, names = import_module(module), _names(module)
    kinds = {"Classes": inspect.isclass, "Functions": callable, "Constants": lambda thing: True}
    lines = [f"# {module}", "", f"{title}.", ""]
    for heading, belongs in kinds.items():
        chosen = [name for name in names if belongs(getattr(home, name))]
        names = [name for name in names if name not in chosen]
        if chosen and heading == "Constants":
            lines += ["## Constants", "", *(f"- `{name}` = `{_short(getattr(home, name))}`" for name in chosen), ""]
        elif chosen:
            lines += [f"## {heading}", "", "```{eval-rst}", f".. currentmodule:: {module}", ""]
            lines += [".. autosummary::", "   :toctree: generated", "", *(f"   {name}" for name in chosen), "```", ""]
    return "\n".join(lines)


def commands_page() -> str:
    """The list of commands, each with the first sentence of its help."""
    lines = [
        "# Commands",
        "",
        "The help of every command. `trueonline COMMAND --help` prints the same in the terminal.",
        "",
    ]
    for name in COMMANDS:
        command = import_module(f"trueonline.cli.{name}").command
        lines.append(f"- [`trueonline {name}`]({name}.md): {command.get_short_help_str(limit=200)}")
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *COMMANDS, "```", ""])


def command_page(name: str) -> str:
    """One command: sphinx-click reads its help and its options."""
    directive = [f".. click:: trueonline.cli.{name}:command", f"   :prog: trueonline {name}", "   :nested: full"]
    return "\n".join(["```{eval-rst}", *directive, "```", ""])


def catalogue_page() -> str:
    """Every row of the catalogue: class, definition, cost, exactness as measured, citation, and the rule itself."""
    path = DOCS / "results" / "data" / "verify.json"
    measured = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = [
        "# Catalogue",
        "",
        "Every method once, made from `trueonline.catalog`. *Exactness* is the largest difference of any weight from the",
        "definition after any step, relative to the largest weight. `trueonline verify` measured it in the",
        "[stored run](../results/index.md).",
        "",
        "| method | name | features | trace | exactness |",
        "|---|---|---|---|---|",
        *(_summary(row, measured.get(row.name)) for row in catalog.METHODS.values()),
        "",
    ]
    for group in catalog.GROUPS:
        rows = [row for row in catalog.METHODS.values() if row.group == group]
        lines += [f"## {group[0].upper()}{group[1:]}", ""]
        for row in rows:
            lines += _entry(row, measured.get(row.name))
    return "\n".join(lines)


def _summary(row: catalog.Method, measured: dict[str, Any] | None) -> str:
    cells = (f"[{row.title}]({row.page})", f"`{row.name}`", _features(row), row.trace, _exactness(measured))
    return f"| {' | '.join(cells)} |"


def _features(row: catalog.Method) -> str:
    return "binary" if row.binary else "any"


def _exactness(measured: dict[str, Any] | None) -> str:
    return f"{measured['max_error']:.1e}" if measured else "not in the stored run"


def _entry(row: catalog.Method, measured: dict[str, Any] | None) -> list[str]:
    options = "".join(f", {key}={value}" for key, value in row.options.items())
    facts = {
        "Class": _link(row.resolve("learner")) + (f" with `{options[2:]}`" if options else ""),
        "Definition": _link(row.resolve("definition")),
        "Features": _features(row),
        "Trace": row.trace,
        "Cost of a step": COSTS[row.memory] if row.rule else "the last K transitions",
        "Exactness": _exactness(measured),
        "Page": f"[equations, departures, measurements]({row.page})",
    }
    lines = [f"### {row.title}", "", f"`{row.name}`", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in facts.items()]
    if row.rule is None:
        return [*lines, ""]
    rule = row.resolve("rule")
    said = inspect.getdoc(inspect.getmodule(rule.py_func)) or ""
    source = inspect.getsource(rule.py_func).rstrip()
    return [*lines, "", said.split("\n\n")[0], "", "```python", source, "```", ""]


def _names(module: str) -> list[str]:
    """The public names of a module that have no page under a module before it."""
    home = import_module(module)
    return [name for name in home.__all__ if _home_of(name, getattr(home, name)) == module]


def _home_of(name: str, thing: Any) -> str | None:
    """The first module that has a thing under this name. Modules and `__version__` have no page."""
    if inspect.ismodule(thing) or name.startswith("__"):
        return None
    return next((module for module in MODULES if getattr(import_module(module), name, None) is thing), None)


def _link(thing: Any) -> str:
    """A link to the page of a class, under its public name. One that has none is named only."""
    home = _home_of(thing.__name__, thing)
    return f"{{py:class}}`{home}.{thing.__name__}`" if home else f"`{thing.__module__}.{thing.__name__}`"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "…"


def mark_equations(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Equations and tables stand in docstrings as `help` shows them. reStructuredText wants `::` before them."""
    sections = next((place - 1 for place, line in enumerate(lines) if line.startswith("---")), len(lines))
    marked: list[str] = []
    literal = False
    for place, line in enumerate(lines):
        equation = place < sections and line.startswith(" ")  # below, what is indented describes a parameter
        begins = equation and not literal and not (marked and marked[-1])
        as_is = line.startswith("|") or begins or (equation and literal)
        if as_is and not literal:
            marked += ["::", ""]
        literal = as_is or (literal and not line)
        marked.append(f"    {line}" if as_is else line)
    lines[:] = marked


def whole_signature(app: Any, what: str, name: str, thing: Any, options: Any, shown: str, returned: str) -> Any:
    """A class with a `__new__` that takes anything is shown with the arguments of its `__init__`."""
    if what == "class" and shown == "(*_, **__)":
        parameters = inspect.signature(thing).parameters.values()
        return str(inspect.Signature([each.replace(annotation=each.empty) for each in parameters])), returned
    return None


def keep_help_as_it_is(app: Any, context: Any, lines: list[str]) -> None:
    """Help is plain text: `logs/*.csv` begins no emphasis, and lists and examples keep their spaces."""
    shown: list[str] = []
    for line in lines:
        as_is = line.startswith("| ")
        if as_is and not (shown and shown[-1].startswith("    ")):
            shown += ["", "::", ""]
        marked = line.startswith(("**Required**", "    **Required**"))  # by sphinx-click
        shown.append(f"    {line[2:]}" if as_is else line if marked else line.replace("*", "\\*"))
    lines[:] = shown


def setup(app: Any) -> dict[str, Any]:
    app.connect("config-inited", write_pages)
    app.connect("autodoc-process-docstring", mark_equations, priority=100)  # before numpydoc reads them
    app.connect("autodoc-process-signature", whole_signature)
    for part in ("description", "options", "arguments"):
        app.connect(f"sphinx-click-process-{part}", keep_help_as_it_is)
    # With another `env_version`, Sphinx reads all pages again.
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 2}
