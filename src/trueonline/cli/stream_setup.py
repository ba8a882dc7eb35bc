"""The meaning of the options of `trueonline predict` and `trueonline live`, taken together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from trueonline.cli.stream_options import PARAMETERS


def understood(given: dict[str, Any], pace: Any) -> tuple[Any, Any]:
    """The options of the command, and the setup that determines the predictions."""
    from trueonline.problems.arm import RATE
    from trueonline.streams.predictor import Setup
    from trueonline.streams.questions.durations import rate, seconds
    from trueonline.streams.questions.time_scales import samples_of
    from trueonline.streams.running.predict_command import Options
    from trueonline.streams.signals import split
    from trueonline.streams.sources import SourceAddress, columns_of

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
    chosen = {name: given.pop(name) for name in ("rate", "method", "meaning", "coverage", "minimum", "maximum")}
    chosen |= _parameters(chosen["method"], {name: given.pop(name) for name in PARAMETERS}, ranges)
    if chosen["rate"] is not None:
        chosen["rate"] = _read("--rate", rate, chosen["rate"])
    if given["every"] is not None:
        given["every"] = _read("--checkpoint-every", seconds, given["every"])
    given["of_signals"] = given.pop("config")
    if given["of_signals"] and given["by"] is None:
        raise click.UsageError("[signals] in --config is for fleets: give --by, the column that names the signals.")
    gap = given.pop("max_gap")
    chosen["max_gap"] = None if gap is None else _read("--max-gap", seconds, gap)
    address = given["source"] = SourceAddress.of(given["source"])
    if chosen["rate"] is None and address.has_own_times and not address.is_live:  # the arm
        chosen["rate"] = float(RATE)
    if given["by"] is None and given["shard"] != (1, 1):
        raise click.UsageError("--shard is for fleets: give --by, the column that names the signals.")
    if given["by"] is not None and given["time"] is None:
        raise click.UsageError("--by needs --time, the column with the times: signals have no common rate.")
    if chosen["rate"] is None and given["time"] is None and not address.has_own_times:
        raise click.UsageError(
            "The samples need times: give --rate, in samples a second, or --time, the column with them."
        )
    inputs = list(dict.fromkeys(targets)) if signals is None else split(signals)
    if "all" in inputs:
        columns = columns_of(address, time=given["time"])
        numeric = [name for name in columns if name != given["by"]]
        inputs = list(dict.fromkeys(name for each in inputs for name in (numeric if each == "all" else [each])))
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
