"""The command `trueonline`. Commands import late and hold no mathematics: `--help` imports neither NumPy nor Numba."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from trueonline import __version__

# Name → class, in `trueonline` or in `trueonline.control`, or a function that makes learners, in `trueonline.nonlinear.squashed`.
PREDICTION = {"accumulate": "AccumulateTD", "replace": "ReplaceTD", "true_online": "TrueOnlineTD"}
FAMILY = {  # the rest of it: off-policy, but for Monte Carlo
    "monte_carlo": "MonteCarlo",
    "emphatic": "EmphaticTD",
    "true_online_emphatic": "TrueOnlineEmphaticTD",
    "gtd": "GTD",
    "true_online_gtd": "TrueOnlineGTD",
    "provisional_td": "ProvisionalTD",
    "provisional_q": "ProvisionalQ",
    "forward_td": "forward_td",
}
CONTROL = {
    "accumulate_sarsa": "AccumulateSarsa",
    "replace_sarsa": "ReplaceSarsa",
    "clearing_sarsa": "ReplaceSarsa",  # with its option
    "true_online_sarsa": "TrueOnlineSarsa",
    "watkins_q": "WatkinsQ",
    "true_online_watkins_q": "TrueOnlineWatkinsQ",
}
METHODS = {**PREDICTION, **FAMILY, **CONTROL}


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """True online temporal-difference learning: exact, fast, and checked against its definition."""


@main.command()
@click.argument("methods", nargs=-1, metavar="[METHOD]...")
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1), help="Random streams of each kind.")
@click.option("--steps", default=50, show_default=True, type=click.IntRange(2), help="Transitions in each stream.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the streams.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of a table.")
def verify(methods: tuple[str, ...], trials: int, steps: int, seed: int, as_json: bool) -> None:
    """Check that methods equal their definitions at every step of random streams.

    \b
    METHOD is one or more of these, by default all of them:
      accumulate, replace, true_online, monte_carlo          prediction
      emphatic, true_online_emphatic, gtd, true_online_gtd   off-policy
      provisional_td, provisional_q
      forward_td                                             with V = tanh(wᵀφ)
      accumulate_sarsa, replace_sarsa, true_online_sarsa     control
      clearing_sarsa (replacing traces, and clearing those of other actions)
      watkins_q, true_online_watkins_q

    Each is run beside the equations that define it (for true_online: the online λ-return algorithm), and the largest
    difference of any weight after any transition is shown, relative to the largest weight so far. The exit status is 1 when
    one is not exact. The last line is no verdict: it says how far a method is from the online forward view that it aims at,
    which only true online ones equal.

    The streams are dense and sparse, binary and real-valued, with varying γ and λ, several episodes that end or are cut
    short, large step-sizes and step-size schedules, and for off-policy methods importance ratios, 0 among them.
    """
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise click.BadParameter(f"unknown method {unknown[0]!r}; known are {', '.join(METHODS)}", param_hint="METHOD")

    import trueonline
    from trueonline import control
    from trueonline.checks import verification
    from trueonline.nonlinear import squashed

    places = dict.fromkeys(CONTROL, control) | {"forward_td": squashed}
    classes = {name: getattr(places.get(name, trueonline), kind) for name, kind in METHODS.items()}
    makers = {**classes, "clearing_sarsa": partial(control.ReplaceSarsa, clear_others=True)}
    makers |= {name: partial(classes[name], second_step_size=0.2) for name in ("gtd", "true_online_gtd")}
    names = methods or tuple(METHODS)
    kinds = verification.KINDS
    rounds = sum(trials for name in names for kind in kinds if kind.binary or not getattr(classes[name], "binary", False))
    with _plain_errors("Stopped."), click.progressbar(length=rounds, label="Verifying", file=sys.stderr) as bar:
        reports = {
            name: verification.verify(makers[name], trials=trials, steps=steps, seed=seed, progress=lambda: bar.update(1))
            for name in names
        }
    if as_json:
        click.echo(_as_json(reports))
    else:
        for group in (PREDICTION, FAMILY, CONTROL):
            some = [name for name in reports if name in group]
            width = -(-len(some) // max(1, -(-len(some) // 4)))  # tables of at most four, as even as may be
            for first in range(0, len(some), width or 1):
                table = {name: reports[name] for name in some[first : first + width]}
                click.echo(_as_table(table, [kind.name for kind in kinds]) + "\n")
    if not all(report.exact for report in reports.values()):
        sys.exit(1)


def _as_json(reports: dict) -> str:
    return json.dumps(
        {
            name: {
                "definition": report.definition,
                "max_error": report.max_error,
                "forward_error": report.forward_error,
                "tolerance": report.tolerance,
                "exact": report.exact,
                "streams": {row.stream: row.error for row in report.rows},
            }
            for name, report in reports.items()
        },
        indent=2,
    )


def _as_table(reports: dict, streams: list[str]) -> str:
    """Streams down, methods across."""
    found = [{row.stream: row for row in report.rows} for report in reports.values()]
    rows = [["", *reports]]
    rows += [["definition", *(report.definition for report in reports.values())]]
    rows += [[stream, *(_shown(rows_, stream) for rows_ in found)] for stream in streams]
    rows += [["largest difference", *(f"{report.max_error:.1e}" for report in reports.values())]]
    rows += [["verdict", *("exact" if report.exact else "NOT EXACT" for report in reports.values())]]
    rows += [["from the online forward view", *(f"{report.forward_error:.1e}" for report in reports.values())]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    rule = "─" * len(lines[0])
    ends = 2 + len(streams)
    return "\n".join([*lines[:2], rule, *lines[2:ends], rule, *lines[ends:]])


def _shown(rows: dict, stream: str) -> str:
    return f"{rows[stream].error:.1e}" if stream in rows else "–"


ENGINE_HELP = "local (this machine), dask (a cluster on this machine) or dask:ADDRESS (an existing one)."


@main.command()
@click.argument("spec", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--out", default="sweep", show_default=True, type=click.Path(file_okay=False), help="Folder for the results."
)
@click.option("--engine", default="local", show_default=True, help=ENGINE_HELP)
@click.option("--shard", "share", metavar="I/N", help="Do the I-th of N shares only; all share one folder.")
@click.option("--threads", type=click.IntRange(1), help="Threads or workers; by default one for each core.")
def sweep(spec: str, out: str, engine: str, share: str | None, threads: int | None) -> None:
    """Sweep methods over step-sizes and trace decays on the problems that the TOML file SPEC describes.

    Every result is a file in OUT/tasks as soon as it is there; only what is missing is computed. When all is there,
    OUT/results.parquet and OUT/results.csv hold the table, and the best parameters of each method are printed.

    The methods are accumulate, replace and true_online. For problems in which one policy is followed and another asked about
    (baird, off_policy.two_state, random_mdp, or arrays with behaviour and target in them) they are off_policy, gtd and
    emphatic, each also with true_online_ before it, and provisional_td. GTD(λ) has a second step-size, η times the first:
    { method = "gtd", eta = [0.25, 4.0] } in the list. With after = 80 the first 80 steps are not counted.

    \b
    An example of SPEC (all but [[problems]] may be left out):
      methods = ["accumulate", "replace", "true_online"]   # without it, all that apply to a problem
      step_sizes = [0.01, 0.03, 0.1, 0.3, 1.0]
      trace_decays = [0.0, 0.5, 0.9, 1.0]
      runs = 50
      steps = 100
      seed = 0
      [[problems]]
      kind = "random_mrp"   # or random_walk, one_state, two_state, arrays (with path = "my.npz")
      k = 10
      b = 3
      sigma = 0.1
      representations = ["tabular", "binary"]   # or binary_unit, non_binary (not for replace)
    """
    with _plain_errors():
        from trueonline import study
        from trueonline.study import results as tables
        from trueonline.study import sweep_file
        from trueonline.terminal import TasksBar

        cases = sweep_file.read(spec)
        with TasksBar("Sweeping") as progress:
            found = study.run(cases, engine=engine, out=f"{out}/tasks", share=share, threads=threads, progress=progress)
        if found is None:
            click.echo(f"Share {share} is done; others are not. Their results belong into {out}/tasks as well.")
            return
        tables.write(found, f"{out}/results")
        click.echo(tables.best(found))
        click.echo(f"All {found.num_rows:,} results are in {out}/results.parquet and {out}/results.csv")


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listing", is_flag=True, help="List the experiments and what they show.")
@click.option(
    "--out", default="reproduction", show_default=True, type=click.Path(file_okay=False), help="Folder to leave it in."
)
@click.option(
    "--runs", type=click.IntRange(1), help="Runs of each setting, instead of the paper's (or the study's) number."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of everything random.")
@click.option(
    "--scale",
    default="quick",
    show_default=True,
    type=click.Choice(["quick", "evening", "paper"]),
    help="How much of asterix: minutes, a night on two cores, or all of it on a cluster.",
)
@click.option("--engine", default="local", show_default=True, help=ENGINE_HELP)
@click.option(
    "--data", metavar="FILE", help="For myoelectric: a recording (CSV or Parquet) to stand beside the simulated arm."
)
@click.option(
    "--columns",
    metavar="ROLE=COLUMN,…",
    help="Where FILE has force, muscle1, muscle2, position, velocity, recording, if columns are called otherwise.",
)
@click.option("--rate", type=float, help="Samples of FILE a second, a multiple of 40.  [default: 40]")
@click.option("--shard", "share", metavar="I/N", help="Of asterix, do the I-th of N shares only; all share one folder.")
@click.option("--threads", type=click.IntRange(1), help="Threads, processes or workers; by default one for each core.")
def reproduce(
    names: tuple[str, ...],
    listing: bool,
    out: str,
    runs: int | None,
    seed: int,
    scale: str,
    engine: str,
    data: str | None,
    columns: str | None,
    rate: float | None,
    share: str | None,
    threads: int | None,
) -> None:
    """Run the paper's experiments and say of each claim whether it held.

    NAME is one or more experiments, by default all but those that take some minutes or more; --list shows them, with
    those that go beyond the paper: many-mrps, mountain-car, and offpolicy, on learning about one policy from another. Each leaves
    figure.png, figure.pdf, data.csv and data.parquet in OUT/NAME. Those of one call leave OUT/report.html, to be opened
    in a browser, and OUT/verdicts.json, in place of what an earlier call left. Results of sweeps are kept in OUT/tasks,
    and only what is missing is computed: after Ctrl-C or a crash, run the same command again.
    """
    with _plain_errors():
        from trueonline.paper.registry import DEFAULT, MODULES, experiment

        if listing:
            for name in MODULES:
                click.echo(f"{name:<13} {experiment(name).title}{'' if name in DEFAULT else '  (only by name)'}")
            return
        unknown = [name for name in names if name not in MODULES]
        if unknown:
            raise click.BadParameter(f"unknown {unknown[0]!r}; known are {', '.join(MODULES)}", param_hint="NAME")

        from pathlib import Path

        from trueonline.paper.experiment import Settings, Unfinished
        from trueonline.paper.reproduction import Finished
        from trueonline.paper.reproduction import reproduce as run
        from trueonline.terminal import TasksBar

        def announce(done: Finished) -> None:
            click.echo(f"\n{done.experiment.title}  ({done.seconds:.1f} s)")
            for claim in done.outcome.claims:
                symbol, colour = VERDICTS.get(claim.verdict, ("?", None))
                click.echo(f"  {click.style(f'{symbol} {claim.verdict:<13}', fg=colour)} {claim.claim}")

        if share is not None and set(names) != {"asterix"}:
            raise click.BadParameter("only asterix can be done in shares: name it alone", param_hint="--shard")
        if data is None and (columns is not None or rate is not None):
            raise click.BadParameter("there is no --data that they describe", param_hint="--columns, --rate")
        if data is not None and "myoelectric" not in names:
            raise click.BadParameter("only myoelectric can use a recording: name it", param_hint="--data")
        given: dict[str, Any] = {}
        if data is not None:
            from trueonline.nexting import recordings

            roles = {} if columns is None else recordings.parse(columns)
            given = {"data": Path(data), "columns": roles, "rate": 40.0 if rate is None else rate}
        with TasksBar("Sweeping") as progress:
            say = partial(click.echo, err=True)
            settings = Settings(Path(out) / "tasks", seed, runs, engine, threads, progress, scale, share, say, **given)
            try:
                finished = run(names or DEFAULT, out, settings, announce)
            except Unfinished as error:
                click.echo(f"{error}. Their results belong into {out}/tasks as well; then run the same without --shard.")
                return
    verdicts = [claim.verdict for done in finished for claim in done.outcome.claims]
    words = {"holds": "hold", "does not hold": "do not hold"}
    counts = ", ".join(f"{verdicts.count(name)} {words.get(name, name)}" for name in VERDICTS if name in verdicts)
    click.echo(f"\n{len(verdicts)} claims: {counts}. Open {out}/report.html in a browser.")


VERDICTS = {"holds": ("✓", "green"), "does not hold": ("✗", "red"), "within noise": ("≈", "yellow")}


@main.command()
@click.argument("environment", required=False, metavar="ENV")
@click.option("--list", "listing", is_flag=True, help="List the registered environments that can be trained on here.")
@click.option(
    "--method",
    default="true_online_sarsa",
    show_default=True,
    type=click.Choice([name for name in CONTROL if name != "clearing_sarsa"]),
    help="The rule that learns.",
)
@click.option(
    "--step-size",
    default=0.5,
    show_default=True,
    type=float,
    help="α. It is divided by the number of active features, so that 1 goes all the way to a target.",
)
@click.option("--raw-step-size", is_flag=True, help="Take --step-size as it is, without dividing it.")
@click.option("--trace-decay", default=0.9, show_default=True, type=float, help="λ.")
@click.option("--discount", default=0.99, show_default=True, type=float, help="γ.")
@click.option("--epsilon", default=0.1, show_default=True, type=float, help="How often a random action is taken.")
@click.option("--epsilon-final", type=float, help="Let ε go there, on a straight line, in --epsilon-steps.")
@click.option("--epsilon-steps", type=click.IntRange(1), help="How many steps ε takes to get to --epsilon-final.")
@click.option(
    "--features",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "table", "tiles", "fourier"]),
    help="auto: a table where states are numbered, tiles where observations are numbers.",
)
@click.option("--bins", type=click.IntRange(1), help="Tiles: into how many each dimension is divided.")
@click.option("--tilings", type=click.IntRange(1), help="Tiles: how many grids, shifted against each other.")
@click.option("--order", type=click.IntRange(1), help="Fourier: how many half waves at most in each dimension.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="For the environment; may be repeated.")
@click.option("--episodes", default=500, show_default=True, type=click.IntRange(1), help="How long to train.")
@click.option("--runs", default=1, show_default=True, type=click.IntRange(1), help="Independent runs, side by side.")
@click.option("--evaluate", default=20, show_default=True, type=click.IntRange(0), help="Greedy episodes afterwards.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of everything random.")
@click.option("--film/--no-film", default=True, show_default=True, help="Film a greedy episode of the first run.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for the results.  [default: train/ENV]")
@click.option("--engine", default="local", show_default=True, help=ENGINE_HELP)
@click.option("--threads", type=click.IntRange(1), help="Runs at a time; by default one for each core.")
def train(
    environment: str | None,
    listing: bool,
    raw_step_size: bool,
    bins: int | None,
    tilings: int | None,
    order: int | None,
    options: tuple[str, ...],
    runs: int,
    film: bool,
    out: str | None,
    engine: str,
    threads: int | None,
    **given: Any,
) -> None:
    """Train an agent in the Gymnasium environment ENV, which must have discrete actions.

    ENV is a registered name, or module:Name for one that a module of yours registers (the current folder is looked in).

    \b
    Examples:
      trueonline train CartPole-v1
      trueonline train MountainCar-v0 --discount 1 --epsilon 0 --runs 10
      trueonline train FrozenLake-v1 --option is_slippery=false

    OUT gets episodes.csv and .parquet (the return of every episode), evaluation.csv and .parquet (of greedy ones without
    learning), curve.png, film.gif, settings.json, and agent.npz, the first run's agent, for trueonline.load. After Ctrl-C or
    a crash, run the same command again: it goes on from the last checkpoint, and comes to the same results bit for bit.
    More --runs may be added later. A folder with results of other settings is left alone.
    """
    with _plain_errors("Stopped. Run the same command again to go on from the last checkpoint."):
        from trueonline.control.gym import train_command

        if listing:
            for line in train_command.suitable():
                click.echo(line)
            return
        if environment is None:
            raise click.UsageError("Missing argument 'ENV'; --list shows what there is.")
        grids = {"bins": bins, "tilings": tilings, "order": order}
        settings = train_command.Settings(
            environment,
            dict(map(train_command.option, options)),
            divided=not raw_step_size,
            feature_options={name: value for name, value in grids.items() if value is not None},
            **given,
        )
        folder = out or f"train/{environment.replace(':', '/')}"
        trained = train_command.train(
            settings, folder, runs=runs, film=film, engine=engine, threads=threads, say=click.echo
        )
        for line in train_command.summary(trained):
            click.echo(line)
        if film and trained.no_film:
            click.echo(f"No film: {trained.no_film}", err=True)


def _stream_options(command: Any) -> Any:
    """The options that `predict` and `live` share."""
    options = (
        click.argument("source"),
        click.option("--target", "targets", multiple=True, required=True, help="What to predict: names, with commas."),
        click.option("--signals", help="What predictions depend on: names, with commas.  [default: the targets]"),
        click.option("--rate", type=float, help="Samples a second. Times are made from it unless --time is given."),
        click.option(
            "--horizon", "horizons", multiple=True, help="Time scale: 2s, 500ms; may be repeated.  [default: 1s]"
        ),
        click.option(
            "--discount", "discounts", multiple=True, help="γ instead: a number, or the name of a signal that has it."
        ),
        click.option(
            "--method",
            default="true_online",
            show_default=True,
            type=click.Choice(list(PREDICTION)),
            help="The rule that learns.",
        ),
        click.option(
            "--step-size",
            default=0.1,
            show_default=True,
            type=float,
            help="α. It is divided by the number of active features (tilings and bias), so that 1 goes all the way.",
        ),
        click.option("--trace-decay", default=0.9, show_default=True, type=float, help="λ."),
        click.option("--tilings", default=8, show_default=True, type=click.IntRange(1), help="Grids, shifted against each other."),
        click.option("--bins", default=10, show_default=True, type=click.IntRange(1), help="Into how many each signal is divided."),
        click.option("--features", default=200_000, show_default=True, type=int, help="How many tiles are hashed to, at most."),
        click.option(
            "--tiles",
            default="joint",
            show_default=True,
            type=click.Choice(["joint", "pairs", "single"]),
            help="Grids over all signals, every two, or each.",
        ),
        click.option(
            "--range", "ranges", multiple=True, metavar="NAME=LOW:HIGH",
            help="Bounds of a signal; may be repeated.  [default: they widen as values come]",
        ),
        click.option("--time", metavar="COLUMN", help="The column (MQTT, JSON: the key) with the times."),
        click.option(
            "--time-unit", default="s", show_default=True, type=click.Choice(["s", "ms", "us", "ns"]),
            help="Their unit, unless they are ISO 8601.",
        ),
        click.option("--max-gap", type=float, help="Seconds; a longer gap cuts the trace.  [default: 10 samples]"),
        click.option(
            "--missing",
            default="hold",
            show_default=True,
            type=click.Choice(["hold", "skip", "error"]),
            help="Missing values and NaN: keep the last one, leave the sample out, or stop.",
        ),
        click.option("--follow", is_flag=True, help="Wait for what is appended to a text file."),
        click.option("--out", metavar="FILE", help="Predictions: a .csv or .parquet file, or - to print them."),
        click.option("--checkpoint", metavar="FILE", help="Where to go on from.  [default: OUT.checkpoint]"),
        click.option("--every", default=10.0, show_default=True, type=float, help="Seconds between checkpoints, at least."),
        click.option("--fresh", is_flag=True, help="Begin anew although there is a checkpoint."),
        click.option("--samples", "limit", type=click.IntRange(1), help="Stop after so many."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _stream(given: dict[str, Any], pace: float | None) -> tuple[Any, Any]:
    """The options of `predict` and `live`, understood."""
    from trueonline.nexting.arm import RATE
    from trueonline.nexting.predict_command import Options
    from trueonline.nexting.predictor import Setup
    from trueonline.nexting.signals import seconds, split
    from trueonline.nexting.sources import has_own_times, is_live

    def several(texts: tuple[str, ...]) -> list[str]:
        return [name for text in texts for name in split(text)]

    targets = several(given.pop("targets"))
    signals = given.pop("signals")
    discounts = [_number_or_name(text) for text in several(given.pop("discounts"))]
    horizons = [seconds(text) for text in several(given.pop("horizons"))]
    ranges = dict(_range(text) for text in given.pop("ranges"))
    names = ("rate", "method", "step_size", "trace_decay", "tilings", "bins", "features", "tiles")
    chosen = {name: given.pop(name) for name in names}
    own_times = has_own_times(given["source"])
    if chosen["rate"] is None and own_times and not is_live(given["source"]):  # the arm
        chosen["rate"] = float(RATE)
    if chosen["rate"] is None and given["time"] is None and not own_times:
        raise click.UsageError(
            "The samples need times: give --rate, in samples a second, or --time, the column with them."
        )
    setup = Setup(
        signals=split(signals) if signals is not None else targets,
        targets=targets,
        discounts=discounts,
        horizons=horizons or ([] if discounts else [1.0]),
        bounds=ranges,
        **chosen,
    )
    return Options(pace=pace, **given), setup


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, sign, bounds = text.rpartition("=")
    low, colon, high = bounds.partition(":")
    try:
        if not (sign and colon and name):
            raise ValueError
        return name, (float(low), float(high))
    except ValueError:
        raise click.BadParameter(
            f"must be NAME=LOW:HIGH, such as force=0:5, got {text!r}", param_hint="--range"
        ) from None


@main.command()
@_stream_options
@click.option("--pace", type=float, help="Replay a file so many times as fast as it was recorded; 1 is real time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end: samples, dropped, questions.")
def predict(pace: float | None, as_json: bool, limit: int | None, **given: Any) -> None:
    """Predict signals of a stream while learning to, and score the predictions against what came true.

    SOURCE is a file (CSV, JSON lines, Parquet), - for standard input, mqtt://host:port/topic, lsl://name, or arm, a
    simulated arm. For each TARGET and time scale the return is predicted: the discounted sum of the coming values. A
    horizon of 2s is γ = 1 − 1/(2·rate): the prediction is about the coming 2 seconds.

    \b
    Examples:
      trueonline predict arm --target force --horizon 0.5s,2s --samples 20000
      trueonline predict log.csv --rate 40 --signals a,b,force --target force --horizon 800ms --out predictions.csv
      trueonline predict mqtt://localhost/arm --rate 100 --time time --target grip --out predictions.parquet \\
          --signals "grip,velocity(grip),envelope(emg, 0.2)"

    Signals may be derived: velocity(x), lowpass(x, 0.5), envelope(x, 0.2), lag(x, 1). A name is as in the source.

    With --out a checkpoint is written every so often. After Ctrl-C or kill -9, give the same command again: it goes on from
    the last one, and says what was lost. A file that was read to its end leaves no checkpoint unless one was named.
    """
    with _plain_errors("Stopped."):
        from trueonline.nexting import predict_command
        from trueonline.terminal import StreamBar

        options, setup = _stream(given, pace)
        if as_json and options.out == "-":
            raise click.UsageError("--json and --out - would both print; give one of them.")
        say = partial(click.echo, err=True)
        warn = predict_command.Warner(say)
        run = predict_command.prepare(options, setup, sys.stdout, say)
        with predict_command.until_stopped() as stop, StreamBar() as bar:
            summary = predict_command.predict(run, stop, [bar, warn], limit, forget=options.checkpoint is None)
        warn.tell(summary["warnings"])
        if as_json:
            click.echo(json.dumps(summary, indent=2, allow_nan=False))
        else:
            click.echo(predict_command.as_text(summary, options.out), err=options.out == "-")
        if run.source.replayable and not run.ended:
            go_on = " Give the same command again to go on." if run.checkpoint is not None else ""
            say(f"Stopped before the end.{go_on}")
            sys.exit(130)
        if run.ended and not summary["samples"]:
            raise click.ClickException("there was no sample that could be used")


@main.command()
@_stream_options
@click.option("--pace", type=float, help="How fast a file is replayed.  [default: 1, real time]")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where the page is served; beyond this machine with --token."
)
@click.option("--port", default=8040, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--token", envvar="TRUEONLINE_TOKEN", help="A secret of 16 characters or more, or $TRUEONLINE_TOKEN.")
def live(pace: float | None, host: str, port: int, token: str | None, limit: int | None, **given: Any) -> None:
    """Predict as `predict` does, and watch it on a web page.

    The page shows each signal, its prediction, and the return that came true sliding in behind it.

    \b
    Examples:
      trueonline live arm --target force,position --horizon 0.5s,2s --signals position,velocity,force,flexor,extensor
      trueonline live mqtt://localhost/arm --rate 100 --time time --target grip
      trueonline live lsl://EMG --rate 200 --target 0 --host 0.0.0.0 --token "$(openssl rand -hex 16)"
    """
    with _plain_errors("Stopped."):
        from trueonline.nexting import predict_command
        from trueonline.nexting.sources import is_live

        if pace is None and not is_live(given["source"]) and not given["follow"]:
            pace = 1.0
        options, setup = _stream(given, pace)
        say = partial(click.echo, err=True)
        page = predict_command.Page(options.source, host, port, token)
        run = predict_command.prepare(options, setup, sys.stdout, say, page.open)
        with predict_command.until_stopped() as stop:
            say(f"Open {page.url} in a browser. Ctrl-C ends it.")
            summary = page.show(run, stop, limit)
        predict_command.Warner(say).tell(summary["warnings"])
        click.echo(predict_command.as_text(summary, options.out), err=options.out == "-")
        if run.checkpoint is not None and not run.ended:
            say("Give the same command again to go on.")


@main.command()
@click.argument("file")
@click.option("--function", "name", help="Which function of FILE, if there are several.")
@click.option("--latex", is_flag=True, help="Print the equations for LaTeX.")
@click.option("--out", metavar="METHOD.py", help="Write the method to a file, to read or to change.")
@click.option(
    "--trials",
    default=3,
    show_default=True,
    type=click.IntRange(0),
    help="Random streams of each kind to check it on; 0 for none.",
)
def derive(file: str, name: str | None, latex: bool, out: str | None, trials: int) -> None:
    """Derive the backward view of a forward view.

    FILE is Python with a function U(k, h, …): what the update of time k aims at when everything up to time h is known,
    made of R[j], gamma[j], lam[j], rho[j], alpha[j], V(i, j), and for agents greedy[j] and V_max(i, j), which it asks for by the
    names of its arguments. A function
    step(k, …) in the same file gives the step-size, if it is not alpha[k]. For example (the λ-return):

    \b
    def target(k, h, R, V, gamma, lam):
        if k + 1 == h:
            return R[h] + gamma[h] * V(k, h)
        rest = target(k + 1, h, R, V, gamma, lam)
        return R[k + 1] + gamma[k + 1] * ((1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * rest)

    Printed are the equations, and the largest difference between the compiled method and the forward view at any step of
    random streams. Where there is no backward view at a cost that does not grow, it says at which k and h; the exit status
    is then 1. FILE is run: give only files that you trust.
    """
    with _plain_errors("Stopped."):
        from trueonline.derivation import derive_command
        from trueonline.files import write_whole

        if out is not None and (os.path.exists(out) or not os.path.isdir(os.path.dirname(out) or ".")):
            raise ValueError(f"--out must be a new file in a folder that is there, got {out}")
        found = derive_command.of_file(file, name)
        click.echo(found.latex() if latex else derive_command.as_text(found))
        if trials:
            length = trials * len(found.kinds())
            with click.progressbar(length=length, label="Verifying", file=sys.stderr) as bar:
                report = found.verify(trials=trials, progress=lambda: bar.update(1))
            click.echo(f"\n{report}", err=latex)
            if not report.exact:
                sys.exit(1)
        if out is not None:
            write_whole(out, lambda stream: stream.write(found.source().encode()))
            click.echo(f"The method is in {out}.", err=True)


def _atari_options(command: Any) -> Any:
    """The options that `asterix` and `atari` share."""
    options = (
        click.option(
            "--protocol",
            default="paper",
            show_default=True,
            type=click.Choice(["paper", "published"]),
            help="paper: as the text says. published: as the program published with it does.",
        ),
        click.option(
            "--method",
            default="true_online",
            show_default=True,
            help="accumulate, replace, true_online, random; with the protocol paper also watkins_q, true_online_watkins_q.",
        ),
        click.option("--step-size", default=0.5, show_default=True, type=float, help="α, before it is divided."),
        click.option("--fixed-step-size", is_flag=True, help="Take α as it is, without dividing it."),
        click.option("--trace-decay", default=0.9, show_default=True, type=float, help="λ."),
        click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the choices."),
        click.option("--frames", type=click.IntRange(1), help="Play for so many frames.  [default: 4,320,000]"),
        click.option("--episodes", type=click.IntRange(1), help="Play so many episodes, instead."),
        click.option(
            "--background",
            type=click.Path(exists=True, dir_okay=False),
            help="A file with the background; by default it is learned from five minutes of random play.",
        ),
        click.option(
            "--checkpoint",
            type=click.Path(dir_okay=False),
            help="Keep the state there, every minute and at the end, and go on from there.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object: episodes, mean score, settings."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@_atari_options
def asterix(**given: Any) -> None:
    """Play one run of Asterix while learning it (section 5.3).

    The features say which colours are in which of 16 × 14 tiles of the screen, without its background: 28,673 of them.
    An action lasts 5 frames, ε = 0.01, γ = 0.999. α is divided by the largest number of active features seen so far.
    The score is in the game's points; an episode that has begun is played to its end and counts.

    \b
    Example: the beginning of one of the runs of the program published with the paper, with its background file:
      trueonline asterix --protocol published --method true_online --step-size 2 --trace-decay 0.95 \\
          --seed 1 --episodes 25 --background asterix.bg --json
    """
    _play("asterix", **given)


@main.command()
@click.argument("game", required=False)
@click.option("--list", "listing", is_flag=True, help="List the games.")
@_atari_options
def atari(game: str | None, listing: bool, **given: Any) -> None:
    """Play one run of any Atari GAME while learning it, as `trueonline asterix` does.

    GAME is a name such as breakout or space_invaders; --list shows them. α is divided by the largest number of active
    features seen so far.
    """
    if listing:
        with _plain_errors():
            from trueonline.control.atari import games

            click.echo("\n".join(games()))
        return
    if game is None:
        raise click.UsageError("name a game; --list shows them")
    _play(game.lower(), **given)


def _play(
    game: str, background: str | None, checkpoint: str | None, as_json: bool, fixed_step_size: bool, **given: Any
) -> None:
    stopped = "Stopped." if checkpoint is None else "Stopped. Run the same command again to go on from the checkpoint."
    with _plain_errors(stopped):
        from trueonline.control.atari import Settings
        from trueonline.control.atari import command as atari_command

        found = atari_command.run(Settings(game=game, scaled=not fixed_step_size, **given), background, checkpoint)
        click.echo(atari_command.as_json(found) if as_json else atari_command.as_text(found))


@contextmanager
def _plain_errors(
    stopped: str = "Stopped. Finished tasks are kept; run the same command again to go on.",
) -> Iterator[None]:
    """What a user can mend is said in a line; Ctrl-C says how to go on."""
    try:
        yield
    except ImportError as error:
        hint = "" if "pip install" in str(error) else "; this command needs the extras: pip install 'trueonline[all]'"
        raise click.ClickException(f"{error}{hint}") from None
    except BrokenPipeError:  # whoever read what is printed has gone: no more is wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        click.echo(f"\n{stopped}", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
