"""What is written from the catalogue: stubs for type checkers, and the lists of methods in README and guides.

`python -m tools.generated` brings all of them up to date. A test fails where one is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from trueonline import catalog
from trueonline.words import listed

ROOT = Path(__file__).parent.parent
PREFIX = {"learners": "", "control": "control.", "nonlinear": "nonlinear.", "deep": "deep."}
NOTE = (
    "# Written by `python -m tools.generated`. Type checkers read this file, because __init__.py imports its names late."
)


def public_names() -> dict[str, catalog.Method]:
    """Every class of learners and agents as a user reaches it through `trueonline`, with its row, in the catalogue's order."""
    found = {f"{prefix}{name}": row for folder, prefix in PREFIX.items() for name, row in catalog.classes(folder).items()}
    found["nonlinear.ForwardTD"] = found.pop("nonlinear.forward_td")  # the row fixes its value function
    for name in ("StreamTD", "StreamQ", "StreamSarsa", "StreamAC"):
        found[f"deep.{name}"] = found.pop(
            f"deep.stream_{name.removeprefix('Stream').lower()}"
        )  # the row fixes its network
    order = [*catalog.METHODS.values()]
    return dict(sorted(found.items(), key=lambda pair: order.index(pair[1])))


def readme_table() -> str:
    """The README's table of methods: a line for each group."""
    lines = ["| for | classes, with their pages |", "|---|---|"]
    for group in catalog.GROUPS:
        links = [f"[`{name}`](docs/methods/{row.page})" for name, row in public_names().items() if row.group == group]
        lines.append(f"| {group} | {', '.join(links)} |")
    return "\n".join(lines)


def table_of_learners() -> str:
    """The learners of each group, with the first sentence of their docstrings."""
    tables = []
    for group in ("prediction", "off-policy", "average reward"):
        rows = [(name, row) for name, row in public_names().items() if row.group == group and "." not in name]
        lines = [f"| [`{name}`](../methods/{row.page}) | {_summary(row)} |" for name, row in rows]
        tables.append("\n".join([f"| {group} | |", "|---|---|", *lines]))
    return "\n\n".join(tables)


def learners_that_adapt() -> str:
    """The learners with step-size adaptation, in a sentence."""
    fixed = ("meta-gradient", "usage")  # step-sizes come from elsewhere
    rows = {name: row for name, row in public_names().items() if "." not in name}
    return listed(f"`{name}`" for name, row in rows.items() if row.adapts and not row.memory.endswith(fixed)) + "."


def swept_methods() -> str:
    """The methods with a kernel for sweeps."""
    return listed(f"`{name}`" for name in catalog.names(swept=True)) + "."


def pages_of_methods() -> str:
    """The pages in `docs/methods`, in the order of the catalogue, for the site's menu. Pages without a row come last."""
    pages = [row.page.removesuffix(".md") for row in catalog.METHODS.values()]
    others = {path.stem for path in (ROOT / "docs" / "methods").glob("*.md")} - {"index", "catalogue", "_template"}
    return "\n".join(["```{toctree}", ":maxdepth: 1", ":hidden:", "", *dict.fromkeys([*pages, *sorted(others)]), "```"])


STUBS = ("trueonline", "trueonline.control")
BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"methods": readme_table},
    "docs/methods/index.md": {"pages": pages_of_methods},
    "docs/guides/learners.md": {"learners": table_of_learners},
    "docs/guides/step_sizes.md": {"adapting": learners_that_adapt},
    "docs/guides/gpu.md": {"swept": swept_methods},
}


def stub(package: str) -> str:
    """The stub of a package whose names are imported when they are asked for."""
    module = import_module(package)
    imports = [f"from {package} import {name} as {name}" for name in module._MODULES]
    classes, bases = [], set()
    for name, home in module._HOME.items():
        if home != catalog.LINEAR_MODULE:
            imports.append(f"from trueonline.{home} import {name} as {name}")
            continue
        kind = getattr(module, name)
        bases |= {*kind.__bases__}
        above = ", ".join(base.__name__ for base in kind.__bases__)
        classes.append(f'class {name}({above}):\n    """{(kind.__doc__ or "").partition(chr(10))[0]}"""\n')
    imports += [f"from {base.__module__} import {base.__name__}" for base in bases]
    version = ["__version__: str\n"] if package == "trueonline" else []
    return "\n".join([NOTE, "", *sorted(imports), "", *version, *classes])


def texts() -> dict[Path, str]:
    """Every file with generated text, as it should be."""
    found = {ROOT / "src" / package.replace(".", "/") / "__init__.pyi": stub(package) for package in STUBS}
    for file, blocks in BLOCKS.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        for name, write in blocks.items():
            text, count = re.subn(
                rf"(<!-- {name} -->\n\n).*?(\n\n<!-- /{name} -->)", rf"\1{write()}\2", text, count=1, flags=re.DOTALL
            )
            if not count:
                raise ValueError(f"{file} has no place for {name}: write its two comments as other files do")
        found[ROOT / file] = text
    return found


def outdated() -> list[Path]:
    """The files whose generated text is not what it should be."""
    return [path for path, text in texts().items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main() -> None:
    """Write the files that are out of date."""
    for path in outdated():
        path.write_text(texts()[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")


def _summary(row: catalog.Method) -> str:
    """The first line of a docstring, without its full stop."""
    return (row.resolve("learner").__doc__ or "").partition("\n")[0].removesuffix(".").replace("|", "\\|")


if __name__ == "__main__":
    main()
