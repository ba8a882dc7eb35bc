"""The command `trueonline sweep`: run the sweep of a file, write its table, print the best parameters, draw them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trueonline import study
from trueonline.study import results, sweep_figure, sweep_file, sweeps
from trueonline.terminal import TasksBar, print_table
from trueonline.words import number


def run(
    spec: str,
    out: str,
    figure: str | None = None,
    *,
    engine: str = "local",
    share: str | None = None,
    threads: int | None = None,
    confirm: int | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Do what is missing of the sweep that the file `spec` describes, and leave its results in the folder `out`.

    `figure` is the file to draw the errors to, if any. With `confirm`, the best settings get so many fresh runs. `say` gets what is
    said beside the table.
    """
    cases = sweep_file.read(spec)
    if figure is not None:
        sweep_figure.check(figure)
    with TasksBar("Sweeping") as progress:
        table = study.run(cases, engine=engine, out=f"{out}/tasks", share=share, threads=threads, progress=progress)
    if table is None:
        say(f"Share {share} is done; others are not. Their results belong into {out}/tasks as well.")
        return
    results.write(table, f"{out}/results")
    judged = table
    if confirm is not None:
        with TasksBar("Confirming") as progress:
            fresh = sweeps.confirmation(cases, table, confirm)
            judged = study.run(fresh, engine=engine, out=f"{out}/tasks", threads=threads, progress=progress)
        assert judged is not None
        results.write(judged, f"{out}/confirmed")
    best = results.best(judged)
    names = {"step_size": "α", "trace_decay": "λ", "half_width": "±"}
    rows = [{**row, "half_width": number(row["half_width"], 2)} for row in best.to_pylist()]
    print_table([names.get(name, name) for name in best.column_names], [list(row.values()) for row in rows])
    say("\n".join(results.remarks(judged, "--confirm 50")))
    if figure is not None:
        Path(figure).parent.mkdir(parents=True, exist_ok=True)
        sweep_figure.draw(table, figure)
        say(f"The figure is in {figure}.")
    say(f"All {table.num_rows:,} results are in {out}/results.parquet and {out}/results.csv.")
    if confirm is not None:
        say(f"The fresh runs are in {out}/confirmed.parquet and {out}/confirmed.csv.")
