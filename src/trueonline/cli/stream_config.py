"""`--config FILE.toml`: options of a command in a file, and settings of single signals."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterable
from typing import Any

import click

OF_SIGNALS = ("alert", "coverage", "missing", "max-gap")  # options that signals of a fleet may have for themselves
NUMBER_OR_TEXT = ("rate", "horizons", "discounts", "max_gap", "every")  # options of text that may be a number alone
KINDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def configured(context: click.Context, path: str | None) -> dict[str, dict[str, Any]]:
    """Take options from a file as defaults of the command. Return the settings of signals, by patterns of their names."""
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path} is not TOML: {error}") from None
    signals = found.pop("signals", {}) if isinstance(found.get("signals"), dict) else {}
    options = {
        name.removeprefix("--"): each
        for each in context.command.params
        for name in each.opts
        if name == "source" or (name.startswith("--") and name != "--config")
    }
    defaults: dict[str, Any] = {}
    for key, value in found.items():
        option = options[_known(key, options, path)]
        several = getattr(option, "multiple", False) or option.nargs == -1
        values = value if isinstance(value, list) and (several or option.name == "signals") else [value]
        checked = [_checked(context, option, each, f"{key} in {path}") for each in values]
        defaults[str(option.name)] = checked if several else ",".join(checked) if len(checked) > 1 else checked[0]
    context.default_map = defaults
    return {pattern: _settings(context, options, path, pattern, each) for pattern, each in signals.items()}


def _settings(
    context: click.Context, options: dict[str, click.Parameter], path: str, pattern: str, settings: Any
) -> dict[str, Any]:
    """The settings of the signals that a pattern fits, checked."""
    from trueonline.streams.questions.durations import seconds

    section, checked = f'[signals."{pattern}"] in {path}', {}
    if not isinstance(settings, dict):
        raise click.BadParameter(f"{section} must be a section with settings, got {settings!r:.60}")
    for key, value in settings.items():
        option = options[_known(key, OF_SIGNALS, section)]
        checked[str(option.name)] = _checked(context, option, value, f"{key} of {section}")
    if "max_gap" in checked:
        try:
            checked["max_gap"] = seconds(checked["max_gap"])
        except ValueError as error:
            raise click.BadParameter(f"max-gap of {section}: {error}") from None
    return checked


def _checked(context: click.Context, option: click.Parameter, value: Any, what: str) -> Any:
    """A value of an option, which must be of the type that TOML has for it. Numbers for options of text become text."""
    types = {click.types.BoolParamType: bool, click.types.IntParamType: int, click.types.FloatParamType: float}
    kind = next((types[each] for each in types if isinstance(option.type, each)), str)
    is_number = type(value) in (int, float) and math.isfinite(value)
    also_number = kind is str and option.name in NUMBER_OR_TEXT
    if not (is_number if kind is float else type(value) is kind or (also_number and is_number)):
        raise click.BadParameter(f"{what} must be {KINDS[kind]}{' or a number' * also_number}, got {value!r:.60}")
    try:
        return option.type.convert(str(value) if kind is str else value, option, context)
    except click.BadParameter as error:
        raise click.BadParameter(f"{what}: {error.message}") from None


def _known(key: str, known: Iterable[str], place: str) -> str:
    """The name of an option. An error if there is none of that name."""
    name = key.replace("_", "-")
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        about = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(known))}"
        raise click.BadParameter(f"{place} has the unknown key {key}; {about}")
    return name
