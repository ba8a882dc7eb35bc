"""The options that `trueonline predict` and `trueonline live` share, and what they mean together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from trueonline import catalog
from trueonline.cli import options

SINGLE = [row.name for row in catalog.METHODS.values() if row.horde]
PARAMETERS: dict[str, tuple[Any, Any, str]] = {  # of one learner: type, default, help
    "step_size": (float, 0.1, "α. It is divided by the number of active features, so that 1 goes all the way."),
    "trace_decay": (float, 0.9, "λ."),
    "tilings": (click.IntRange(1), 8, "Grids, shifted against each other."),
    "bins": (click.IntRange(1), 10, "Into how many each signal is divided."),
    "features": (int, 200_000, "How many tiles are hashed to, at most."),
    "tiles": (click.Choice(["joint", "pairs", "single"]), "joint", "Grids over all signals, every two, or each."),
}

stream_options = options.all_of(
    (
        click.argument("source", nargs=-1, required=True, callback=lambda context, option, names: one_or_several(names)),
        click.option("--target", "targets", multiple=True, required=True, help="What to predict: names, with commas."),
        click.option(
            "--signals",
            help="What predictions depend on: names, with commas, or all numeric columns: all.  [default: the targets]",
        ),
        click.option(
            "--rate", help="Samples a second: 40, 40Hz; or 5min, 1/300. Times are made from it unless --time is given."
        ),
        click.option(
            "--horizon",
            "horizons",
            multiple=True,
            help="How far ahead: 500ms, 90s, 15min, 1h, 1d, 20 samples; several with commas. Predictions are the mean of "
            "the coming values, in the signal's unit; the nearest count most.  [default: 20 samples]",
        ),
        click.option(
            "--discount",
            "discounts",
            multiple=True,
            help="γ instead: a number, or the name of a signal that has it. Predictions are then the return, the discounted sum.",
        ),
        click.option(
            "--as",
            "meaning",
            type=click.Choice(["mean", "return"]),
            help="What predictions are.  [default: the mean with --horizon, the return with --discount]",
        ),
        click.option(
            "--coverage",
            default=0.9,
            show_default=True,
            type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
            help="Share of what comes true that bands should hold.",
        ),
        click.option(
            "--method",
            default="auto",
            show_default=True,
            type=click.Choice(["auto", *SINGLE]),
            metavar="METHOD",
            help=f"auto, a mixture of many small learners with nothing to tune; or one learner: {', '.join(SINGLE)}.",
        ),
        *(
            click.option(f"--{name.replace('_', '-')}", type=kind, help=f"{text}  [one learner; default: {default}]")
            for name, (kind, default, text) in PARAMETERS.items()
        ),
        click.option(
            "--range",
            "ranges",
            multiple=True,
            metavar="NAME=LOW:HIGH",
            help="Bounds of a signal; may be repeated.  [one learner; default: they widen as values come]",
        ),
        click.option("--time", metavar="COLUMN", help="The column (MQTT, JSON: the key) with the times."),
        click.option(
            "--time-unit",
            default="s",
            show_default=True,
            type=click.Choice(["s", "ms", "us", "ns"]),
            help="Their unit, unless they are ISO 8601; ms for milliseconds since 1970.",
        ),
        click.option(
            "--time-format",
            metavar="FORM",
            help='Their form, if they are neither numbers nor ISO 8601: "%d.%m.%Y %H:%M".',
        ),
        click.option(
            "--max-gap",
            help="Nothing is learned across a longer gap: 90s, 15min.  [default: 10 samples or 3 horizons, the longer]",
        ),
        click.option(
            "--missing",
            default="hold",
            show_default=True,
            type=click.Choice(["hold", "skip", "error"]),
            help="Missing values and NaN: keep the last one, leave the sample out, or stop.",
        ),
        click.option("--follow", is_flag=True, help="Wait for what is appended to a text file."),
        click.option("--out", metavar="FILE", help="Predictions: a .csv, .jsonl or .parquet file, or - to print them."),
        click.option("--checkpoint", metavar="FILE", help="Where to resume from.  [default: OUT.checkpoint]"),
        click.option(
            "--every", default=10.0, show_default=True, type=float, help="Seconds between checkpoints, at least."
        ),
        click.option(
            "--fresh",
            is_flag=True,
            help="Begin from scratch: replace the checkpoint, and whatever files --out and --alerts name.",
        ),
        click.option(
            "--mqtt-password-file",
            metavar="FILE",
            help="The password for a broker.  [default: $TRUEONLINE_MQTT_PASSWORD]",
        ),
        click.option(
            "--mqtt-ca", metavar="FILE", help="Certificates to check a mqtts:// broker by.  [default: the system's]"
        ),
        click.option(
            "--publish",
            metavar="URL",
            help="Send predictions to mqtt[s]://[user@]host[:port]/topic, alerts to topic/alerts.",
        ),
        click.option("--alert", type=float, help="Tell of samples whose surprise is at least this, such as 0.999."),
        click.option("--alerts", metavar="FILE", help="Append alerts to a file of JSON lines.  [--alert is then 0.999]"),
        click.option("--samples", "limit", type=click.IntRange(1), help="Stop after so many."),
    )
)


def one_or_several(names: tuple[str, ...]) -> str | tuple[str, ...]:
    """One source by its name, or several files."""
    return names[0] if len(names) == 1 else names


def understood(given: dict[str, Any], pace: Any) -> tuple[Any, Any]:
    """The options of the command, and the setup that determines the predictions."""
    from trueonline.nexting.arm import RATE
    from trueonline.nexting.durations import rate, seconds
    from trueonline.nexting.predict_command import Options
    from trueonline.nexting.predictor import Setup
    from trueonline.nexting.signals import split
    from trueonline.nexting.sources import columns_of, has_own_times, is_live
    from trueonline.nexting.time_scales import samples_of

    def several(texts: tuple[str, ...]) -> list[str]:
        return [name for text in texts for name in split(text)]

    targets = several(given.pop("targets"))
    signals = given.pop("signals")
    discounts = [_number_or_name(text) for text in several(given.pop("discounts"))]
    horizons = [
        _read("--horizon", lambda each: each if samples_of(each) else seconds(each), text)
        for text in several(given.pop("horizons"))
    ]
    ranges = dict(_range(text) for text in given.pop("ranges"))
    chosen = {name: given.pop(name) for name in ("rate", "method", "meaning", "coverage")}
    chosen |= _parameters(chosen["method"], {name: given.pop(name) for name in PARAMETERS}, ranges)
    if chosen["rate"] is not None:
        chosen["rate"] = _read("--rate", rate, chosen["rate"])
    gap = given.pop("max_gap")
    chosen["max_gap"] = None if gap is None else _read("--max-gap", seconds, gap)
    own_times = has_own_times(given["source"])
    if chosen["rate"] is None and own_times and not is_live(given["source"]):  # the arm
        chosen["rate"] = float(RATE)
    if chosen["rate"] is None and given["time"] is None and not own_times:
        raise click.UsageError(
            "The samples need times: give --rate, in samples a second, or --time, the column with them."
        )
    inputs = list(dict.fromkeys(targets)) if signals is None else split(signals)
    if "all" in inputs:
        columns = columns_of(given["source"], time=given["time"])
        inputs = list(dict.fromkeys(name for each in inputs for name in (columns if each == "all" else [each])))
    setup = Setup(
        signals=inputs,
        targets=targets,
        discounts=discounts,
        horizons=horizons or ([] if discounts else ["20 samples"]),
        bounds=ranges,
        **chosen,
    )
    return Options(pace=pace, **given), setup


def _parameters(method: str, given: dict[str, Any], ranges: dict[str, Any]) -> dict[str, Any]:
    """The parameters of one learner. An error if `auto`, which has none, is given some."""
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]
    if method == "auto" and (named or ranges):
        raise click.UsageError(
            f"{(named or ['--range'])[0]} is for one learner: add --method true_online, or leave it out. The method auto has "
            "nothing to tune."
        )
    return {name: PARAMETERS[name][1] if value is None else value for name, value in given.items()}


def _read(option: str, reader: Callable[[str], Any], text: str) -> Any:
    """The value of an option."""
    try:
        return reader(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


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
