"""The cost of a step against the number of features: flat, but for what the machine's memory takes to answer."""

from __future__ import annotations

from functools import partial
from io import BytesIO

from benchmarks import c_loops, streams
from benchmarks.report import Section, Settings, Table, at_most
from benchmarks.timing import Times, race
from trueonline import TrueOnlineTD
from trueonline.files import write_whole

SIZES = (2_000, 20_000, 200_000, 2_000_000, 20_000_000)
DISTINCT = 2_000
MARKS = ("o-", "o:", "s-", "s:")  # `run` drawn through, C dotted
PARAMETERS = {"step_size": 0.01, "trace_decay": 0.9, "discount": 0.99}


def measure(settings: Settings) -> Section:
    sizes = SIZES[:3] if settings.quick else SIZES
    steps = 10_000 if settings.quick else 50_000
    section = Section(
        "Cost against the number of features",
        f"True online TD(λ) by `run`, {streams.ACTIVE} active features, {steps:,} steps. `few`: {DISTINCT:,} distinct "
        "features spread over all n. `uniform`: any of all n, so that nearly every access misses the caches when n is "
        "large; the lazy loop in C pays for that just the same. The ratio is to the smallest n.",
    )
    kinds = {"few": partial(streams.few, distinct=DISTINCT), "uniform": streams.uniform}
    runs = {}
    for n in sizes:
        for kind, stream in kinds.items():
            X, rewards = stream(n, steps)
            runs[f"{kind}, `run`", n] = partial(TrueOnlineTD(n, **PARAMETERS).run, X, rewards)
            if c_loops.available():
                runs[f"{kind}, C", n] = partial(c_loops.Lazy(n, **PARAMETERS).run, X, rewards)
    # All sizes in one race: they are compared with one another.
    times = race({f"{what} {n}": run for (what, n), run in runs.items()}, rounds=settings.rounds, tries=2)
    columns = list(dict.fromkeys(what for what, _ in runs))
    ratios = [times.ratio(f"few, `run` {n}", f"few, `run` {sizes[0]}") for n in sizes]
    rows = [
        [f"{n:,}", *(times.per_step(f"{what} {n}", steps) for what in columns), ratio]
        for n, ratio in zip(sizes, ratios, strict=True)
    ]
    section.tables.append(Table(["n", *columns, "few, `run`: ratio"], rows))
    name = f"flat: n = {sizes[-1]:,} against n = {sizes[0]:,}, few distinct features"
    section.targets.append(at_most(name, 2.0, ratios[-1]))
    if not c_loops.available():
        section.notes.append(c_loops.MISSING)
    _draw(section, settings, times, sizes, columns, steps)
    return section


def _draw(
    section: Section, settings: Settings, times: Times, sizes: tuple[int, ...], columns: list[str], steps: int
) -> None:
    if settings.pictures is None:
        return
    try:
        from matplotlib.figure import Figure
    except ImportError:
        section.notes.append("Matplotlib is not installed, so there is no figure.")
        return
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="number of features n", ylabel="time per step / ns")
    for what, mark in zip(columns, MARKS[:: 1 if c_loops.available() else 2], strict=True):
        nanoseconds = [times.per_step(f"{what} {n}", steps).seconds * 1e9 for n in sizes]
        axes.plot(sizes, nanoseconds, mark, label=what.replace("`", ""))
    axes.set_ylim(bottom=10.0)
    axes.set_yticks([10, 20, 50, 100, 200, 500, 1000, 2000])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.set_title(f"True online TD(λ), {streams.ACTIVE} active features: cost of a step")
    axes.legend()
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    settings.pictures.mkdir(parents=True, exist_ok=True)
    write_whole(settings.pictures / "flat.png", lambda file: file.write(picture.getvalue()))
    section.pictures["flat.png"] = "cost of a step against n"
