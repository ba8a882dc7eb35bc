"""Pages from the stored results in `docs/results/data`: one with all verdicts, one for each experiment, and the benchmarks.

`make results` makes the data (`benchmarks/store.py`). The pages are written before each build, and git ignores them.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from made_pages import write_if_changed
from pyarrow.csv import read_csv

from benchmarks.report import Section, as_markdown, from_data, markdown_table, summary
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import FAILS, HOLDS, NOISE, deciding
from trueonline.lab.registry import EXPERIMENTS, experiment
from trueonline.lab.report.page import label

RESULTS = Path(__file__).parents[1] / "results"
BADGES = {FAILS: "bdg-danger", NOISE: "bdg-warning", HOLDS: "bdg-success"}  # what does not hold comes first
# What reading a table may end in if it is missing, or was cut off.
DAMAGED = (OSError, EOFError, ValueError, LookupError, TypeError)


# Where pages written by hand say more about an experiment.
READ_ON = {
    "fig4": "experiments.md#one-mrp-of-each-class-is-not-enough",
    "fig9": "experiments.md#one-mrp-of-each-class-is-not-enough",
    "many-mrps": "experiments.md#one-mrp-of-each-class-is-not-enough",
    "mrp-grid": "mrp_grid.md",
    "myoelectric": "myoelectric.md",
    "asterix": "experiments.md#control",
    "mountain-car": "experiments.md#control",
    "stream-x": "experiments.md#control",
    "textbook": "experiments.md#the-random-walk-of-sutton-and-barto",
    "offpolicy": "experiments.md#what-the-off-policy-study-found",
    "collision": "experiments.md#eleven-off-policy-methods-on-one-task",
    "cost": "benchmarks.md",
    "average-reward": "experiments.md#average-reward",
}
NARROW = 1120  # pixels of a picture of one panel, which can be read on a phone without swiping
TIMED = ("cost",)  # experiments that measure times, which other work on the machine changes


def write_pages(app: Any, config: Any) -> None:
    """Write all pages before Sphinx looks for them."""
    write(RESULTS)


def write(results: Path) -> None:
    """Write all pages of a folder of results. Pages of experiments that are gone go too.

    ValueError if a stored file is missing or damaged. Then no page is changed.
    """
    data = results / "data"
    about, verdicts = _read(data / "about.json"), _read(data / "verdicts.json") or []
    stored = [name for name in EXPERIMENTS if name in about]
    pages = {
        results / "verdicts.md": verdicts_page(about, verdicts, _read(data / "verify.json")),
        results / "benchmarks.md": unbroken(benchmarks_page(_read(data / "benchmarks.json"))),
    }
    for name in stored:
        try:
            pages[results / "experiments" / f"{name}.md"] = experiment_page(name, about, verdicts, data)
        except DAMAGED as error:
            why = f"{data / name} is damaged or lacks a file ({type(error).__name__}: {error})"
            raise ValueError(f"{why}: restore it with git, or run make results RESULTS='--again {name}'") from error
    for old in (results / "experiments").glob("*.md"):
        if old not in pages:
            old.unlink()
    for path, text in pages.items():
        write_if_changed(path, text)


# --- Verdicts -------------------------------------------------------------------------------------


def verdicts_page(about: Mapping[str, Any], verdicts: Sequence[Mapping[str, Any]], verified: Mapping[str, Any]) -> str:
    """All claims by their verdict, what was not run, and how the stored results were made."""
    stored = [name for name in EXPERIMENTS if name in about]
    missing = [name for name in EXPERIMENTS if name not in about]
    claims = [each for each in verdicts if each["experiment"] in stored]
    lines = [
        "# Verdicts",
        "",
        "This page has every claim that the experiments judge, with its verdict in the stored run. A claim *holds*, *does not",
        "hold*, or is *within noise*: an interval over the runs decides. Equalities that theory demands are held to rounding.",
        "The page of each experiment has the figures, and the numbers of all its claims. MRP (k, b, σ) is a random Markov reward",
        "process with k states, b next states for each, and noise of standard deviation σ in its rewards. A relative difference",
        "below 0 says that the method that a claim names first has the smaller error.",
        "",
        _counts(claims),
        "",
        "| experiment | does not hold | within noise | holds |",
        "|---|---:|---:|---:|",
        *(_row(name, claims) for name in stored),
        "",
    ]
    for verdict in BADGES:
        chosen = [each for each in claims if each["verdict"] == verdict]
        lines += [f"## {verdict[0].upper()}{verdict[1:]}", "", f"{len(chosen)} of {len(claims)} claims.", ""]
        for name in stored:
            found = [each for each in chosen if each["experiment"] == name]
            if found:
                meaning = "" if verdict == HOLDS else f". {_elsewhere(name, '')}"
                lines += [f"[{plain(experiment(name).title)}](experiments/{name}.md){meaning}", ""]
                lines += [line for each in found for line in _claim(each, with_numbers=verdict != HOLDS)] + [""]
    if verified:
        exact = sum(each["exact"] for each in verified.values())
        worst = max(each["max_error"] for each in verified.values())
        lines += [
            "## Exactness",
            "",
            f"`trueonline verify` held {len(verified)} methods to their definitions. {exact} are exact. The largest difference of",
            f"any weight was {worst:.1e} of the largest weight. The [catalogue](../methods/catalogue.md) has the number of each",
            "method.",
            "",
        ]
    if missing:
        lines += [
            "## Not stored",
            "",
            "The stored run does not have these experiments, so they are in no count above. What earlier runs of them found, and",
            "what did not hold there, is on the pages that are linked here.",
            "",
        ]
        lines += [f"- `{name}`, {plain(experiment(name).title)}. {_elsewhere(name, '')}" for name in missing]
        lines += ["", "`trueonline reproduce NAME` runs them.", ""]
    lines += _made(about)
    toctree = [f"experiments/{name}" for name in stored]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *toctree, "```", ""])


def _counts(claims: Sequence[Mapping[str, Any]]) -> str:
    found = [each["verdict"] for each in claims]
    return " ".join(f"{{{badge}}}`{verdict}: {found.count(verdict)}`" for verdict, badge in BADGES.items())


def _row(name: str, claims: Sequence[Mapping[str, Any]]) -> str:
    found = [each["verdict"] for each in claims if each["experiment"] == name]
    counts = " | ".join(str(found.count(verdict) or "–") for verdict in BADGES)
    return f"| [{plain(experiment(name).title)}](experiments/{name}.md) | {counts} |"


def _claim(claim: Mapping[str, Any], with_numbers: bool) -> list[str]:
    """An item of a list: the verdict, the claim, and the numbers that decide it."""
    numbers = "; ".join(f"{plain(what)}: {plain(number(value))}" for what, value in claim["numbers"].items())
    item = f"- {{{BADGES[claim['verdict']]}}}`{claim['verdict']}` {plain(claim['claim'])}"
    return [item, "", f"  [{numbers}]{{.numbers}}", ""] if with_numbers and numbers else [item]


def claims_table(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Claims with an estimate and its interval as a table whose numbers are aligned, and the others as a list."""
    estimated = [(each, found) for each in claims if (found := deciding(each["numbers"]))]
    lines = [line for each in claims if not deciding(each["numbers"]) for line in _claim(each, with_numbers=True)] + [""]
    for what in dict.fromkeys(found[0] for _, found in estimated):
        rows = [(each, found) for each, found in estimated if found[0] == what]
        if len(rows) < 3:
            lines += [line for each, _ in rows for line in _claim(each, with_numbers=True)] + [""]
            continue
        lines += [
            "::::{div} claims-table",
            "",
            f"| verdict | claim | {plain(what)} | 95 %, from | to |",
            "|---|---|---:|---:|---:|",
        ]
        for each, (_, *estimate) in rows:
            numbers = " | ".join(f"{round(value, 3) + 0.0:+.3f}".replace("-", "−") for value in estimate)
            lines.append(f"| {{{BADGES[each['verdict']]}}}`{each['verdict']}` | {plain(each['claim'])} | {numbers} |")
        lines += ["", "::::", ""]
    return lines


def _made(about: Mapping[str, Any]) -> list[str]:
    """The commands of all parts, and the machines and versions that they ran on."""
    machines = _distinct(entry["machine"] for entry in about.values())
    lines = [
        "## How the results were made",
        "",
        "`make results` runs all commands of this table, and stores what they found in `docs/results/data`. A part that is",
        "stored is not run again, so the command resumes after an interruption. Parts with `--engine cuda`, and the benchmark of",
        "sweeps on a GPU, are left out where there is no GPU.",
        "",
        "| command | seconds | date | commit |",
        "|---|---:|---|---|",
    ]
    for entry in about.values():
        made, commit = entry["machine"], entry["machine"]["trueonline"].rpartition(" ")[2]
        lines.append(f"| `{entry['command']}` | {entry['seconds']:,.0f} | {made['date']} | {commit} |")
    return [*lines, "", *_machines(machines)]


# --- Experiments ----------------------------------------------------------------------------------


def experiment_page(name: str, about: Mapping[str, Any], verdicts: Sequence[Mapping[str, Any]], data: Path) -> str:
    """One experiment: what it is, its pictures, its claims with their numbers, the best of its table, how to run it."""
    chosen, entry = experiment(name), about[name]
    claims = [each for each in verdicts if each["experiment"] == name]
    if not claims:
        raise ValueError("verdicts.json has no claim of it")
    files = sorted((data / name).iterdir(), key=lambda path: (not path.stem.startswith("figure"), path.stem))
    lines = [f"# {plain(chosen.title)}", "", f"{_counts(claims)} {_elsewhere(name, '../')}", ""]
    if reading := chosen.reading:
        source = "book" if "Sutton" in chosen.title else "paper"
        lines += [f"**{reading.question}**", "", f"**What the {source} says.** {reading.paper}", ""]
        lines += [f"**What to look at.** {reading.look}", ""]
    lines += _busy(entry["machine"]) if name in TIMED else []
    for path in files:
        if path.suffix == ".png":
            caption = _caption(chosen.title, path.stem)
            narrow = int.from_bytes(path.read_bytes()[16:20]) <= NARROW  # the width in the head of a PNG
            kind = [":figclass: narrow"] if narrow else []
            lines += [f"```{{figure}} ../data/{name}/{path.name}", f":alt: {caption}", *kind, "```", ""]
    lines += ["## Claims", ""]
    lines += claims_table(claims)
    lines += [f"**Why some do not hold.** {reading.exceptions}", ""] if reading and reading.exceptions else []
    lines += ["## How it was measured", "", plain(chosen.text), ""]
    lines += ["## Numbers", ""]
    tables = [path for path in files if path.name.endswith((".csv", ".csv.gz"))]
    links = ", ".join(f"{{download}}`{path.name} <../data/{name}/{path.name}>`" for path in tables)
    lines += [f"Download all numbers: {links}.", ""]
    (table,) = (path for path in tables if path.stem.split(".")[0] == "data")
    lines += best_table(chosen.best, table)
    lines += ["", "## How to run it", "", "```sh", entry["command"], "```", ""]
    lines += [f"This took {entry['seconds']:,.0f} seconds, and made all that stands above. It also leaves `report.html`."]
    lines += [""]
    return "\n".join([*lines, *_machines([entry["machine"]])])


def _busy(made_on: Mapping[str, str]) -> list[str]:
    """A warning if the machine had more to do than it has cores."""
    cores, _, load = made_on["cores"].partition(", load at the beginning ")
    if not load or float(load) <= float(cores):
        return []
    about = (
        f"The machine had other work while these times were measured: a load of {load} on {cores} cores. So the intervals"
    )
    return [":::{warning}", about, "are wide. Measure again on an idle machine before you rely on them.", ":::", ""]


def _caption(title: str, stem: str) -> str:
    return title if stem == "figure" else f"{title}: {stem.replace('-', ' ')}"


def _elsewhere(name: str, root: str) -> str:
    return f"[What it means]({root}{READ_ON.get(name, 'experiments.md')})."


def best_table(best: BestRows, path: Path) -> list[str]:
    """The best row for each of some columns, with the parameters that reach it."""
    opened = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    about, headings, rows = best.of(read_csv(io.BytesIO(opened)))
    rules = ["---" if isinstance(cell, str) else "---:" for cell in rows[0]]
    cells = [[plain(cell if isinstance(cell, str) else number(cell)) for cell in row] for row in rows]
    return [about, "", *("| " + " | ".join(line) + " |" for line in (headings, rules, *cells))]


# --- Benchmarks -----------------------------------------------------------------------------------


def benchmarks_page(stored: Mapping[str, Mapping[str, Any]]) -> str:
    """All sections, after what most people look for: the ratios to C, NumPy and other packages, and the targets."""
    sections = {name: from_data(data) for name, data in stored.items()}
    targets = [target for section in sections.values() for target in section.targets]
    lines = [
        "# Benchmarks",
        "",
        "`python -m benchmarks` times `trueonline` side by side with other ways of doing the same work. Competitors take turns in",
        "one run, and a ratio is taken within each round. A table has the median over the rounds, with the smallest and the",
        "largest in brackets. Of seven independent rounds, these two enclose the true median in 98 of 100 cases. Absolute times",
        "are for orientation: they belong to the machine.",
        "",
    ]
    if not sections:
        return "\n".join([*lines, "No benchmarks are stored. `make results` runs them.", ""])
    quick = [name for name, data in stored.items() if data["quick"]]
    if quick:
        lines += [":::{warning}", f"Measured with few rounds and smaller sizes: {', '.join(quick)}.", ":::", ""]
    lines += _at_a_glance(sections)
    lines += [
        "## Targets",
        "",
        f"{sum(each.met for each in targets)} of {len(targets)} are met.",
        "",
    ]
    lines += [_badged(markdown_table(summary(targets))), ""]
    lines += [_badged(as_markdown(section, "data/benchmarks")) for section in sections.values()]
    machines = [data["machine"] for data in stored.values()]
    lines += ["## The machine", "", *_machines(_distinct(machines))]
    lines += ["| section | date | seconds | rounds |", "|---|---|---:|---:|"]
    for name, data in stored.items():
        seconds = "–" if data["seconds"] is None else f"{data['seconds']:,.0f}"
        lines.append(f"| {name} | {data['machine']['date']} | {seconds} | {data['rounds']} |")
    return "\n".join([*lines, ""])


def _at_a_glance(sections: Mapping[str, Section]) -> list[str]:
    """How long others take for the same stream: rows of *sparse* and *peers*."""
    rows = []
    if "sparse" in sections:
        for stream, what, took, ratio in sections["sparse"].tables[0].rows:
            if stream == "tile-coded":
                rows.append((what.replace("`run`", "trueonline, `run`"), took, ratio, "[`run`](#sparse-features)"))
    if "peers" in sections:
        for what, took, ratio, *_ in sections["peers"].tables[0].rows:
            if "`run`" not in what and "NumPy" not in what:
                rows.append((what, took, ratio, "[`update`](#peers)"))
    lines = [
        "## At a glance",
        "",
        "True online TD(λ) on one stream with 9 active of 200,000 features. *Lazy* does as `trueonline` does. *Eager* passes over",
        "all features at every step, as Algorithm 2 is written. The ratio says how many times as long it takes as what it is",
        "measured against. MushroomRL passes over all features too. SwiftTD is another algorithm, which adapts step-sizes. Without",
        "adaptation it is true online TD(λ).",
        "",
        "| what | per step | ratio | against |",
        "|---|---:|---:|---|",
    ]
    return [*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows), ""] if rows else []


def _badged(table: str) -> str:
    """The verdicts on targets, as visible as those on claims."""
    return table.replace("| NOT met |", "| {bdg-danger}`not met` |").replace("| met |", "| {bdg-success}`met` |")


# --- Words ----------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Text in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]<>|$#{}])", r"\\\1", text)


def number(value: Any) -> str:
    """A number of a claim as the report writes it, and of a long list of numbers or intervals the range."""
    if not isinstance(value, list):
        return label(value)
    if len(value) > 5 and all(isinstance(each, int | float) for each in value):
        return f"{len(value)} values from {label(min(value))} to {label(max(value))}"
    if len(value) > 5 and all(isinstance(each, list) for each in value):
        return f"{len(value)} intervals, all between {label(min(map(min, value)))} and {label(max(map(max, value)))}"
    return f"[{', '.join(map(number, value))}]"


def unbroken(text: str) -> str:
    """A number stays on one line with its unit, its exponent and the sign before it, and an interval with both its ends."""
    with_unit = re.sub(r"(?<=\d) (?=(?:ns|µs|ms|s|MB|MiB)\b)|(?<=[≤≥<>]) (?=\d)", "\u00a0", text)
    return re.sub(r"(?<=\d)–(?=\d)", "–\u2060", re.sub(r"(?<=\de)-(?=\d)", "−", with_unit))


def _machines(machines: Iterable[Mapping[str, str]]) -> list[str]:
    lines = []
    for made_on in machines:
        lines += ["| | |", "|---|---|", *(f"| {key} | {plain(value)} |" for key, value in made_on.items()), ""]
    return lines


def _distinct(machines: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Every machine once, whenever and under whatever load it ran."""
    found: dict[str, Mapping[str, str]] = {}
    for made_on in machines:
        lasting = {key: value for key, value in made_on.items() if key not in ("date", "trueonline")}
        lasting["cores"] = lasting["cores"].split(",")[0]
        found.setdefault(json.dumps(lasting, sort_keys=True), lasting)
    return list(found.values())


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): restore it with git") from error


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", write_pages)
    app.add_css_file("results.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
