"""The options that `trueonline predict` and `trueonline live` share, and what they mean together."""

from __future__ import annotations

from typing import Any

import click

from trueonline import catalog
from trueonline.cli import options

stream_options = options.all_of(
    (
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
        options.method_choice([row.name for row in catalog.METHODS.values() if row.horde], "true_online"),
        options.step_size(
            0.1, "It is divided by the number of active features (tilings and bias), so that 1 goes all the way."
        ),
        options.trace_decay,
        click.option(
            "--tilings", default=8, show_default=True, type=click.IntRange(1), help="Grids, shifted against each other."
        ),
        click.option(
            "--bins", default=10, show_default=True, type=click.IntRange(1), help="Into how many each signal is divided."
        ),
        click.option(
            "--features", default=200_000, show_default=True, type=int, help="How many tiles are hashed to, at most."
        ),
        click.option(
            "--tiles",
            default="joint",
            show_default=True,
            type=click.Choice(["joint", "pairs", "single"]),
            help="Grids over all signals, every two, or each.",
        ),
        click.option(
            "--range",
            "ranges",
            multiple=True,
            metavar="NAME=LOW:HIGH",
            help="Bounds of a signal; may be repeated.  [default: they widen as values come]",
        ),
        click.option("--time", metavar="COLUMN", help="The column (MQTT, JSON: the key) with the times."),
        click.option(
            "--time-unit",
            default="s",
            show_default=True,
            type=click.Choice(["s", "ms", "us", "ns"]),
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
        click.option("--checkpoint", metavar="FILE", help="Where to resume from.  [default: OUT.checkpoint]"),
        click.option(
            "--every", default=10.0, show_default=True, type=float, help="Seconds between checkpoints, at least."
        ),
        click.option(
            "--fresh", is_flag=True, help="Begin from scratch: replace the checkpoint, and whatever file --out names."
        ),
        click.option(
            "--mqtt-password-file",
            metavar="FILE",
            help="The password for a broker.  [default: $TRUEONLINE_MQTT_PASSWORD]",
        ),
        click.option(
            "--mqtt-ca", metavar="FILE", help="Certificates to check a mqtts:// broker by.  [default: the system's]"
        ),
        click.option("--samples", "limit", type=click.IntRange(1), help="Stop after so many."),
    )
)


def understood(given: dict[str, Any], pace: Any) -> tuple[Any, Any]:
    """The options of the command, and the setup that determines the predictions."""
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
