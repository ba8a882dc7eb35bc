"""`--config FILE.toml`: options of a command in a file, and settings of single signals."""

from __future__ import annotations

import difflib
import tomllib
from typing import Any

import click

OF_SIGNALS = {"alert": float, "coverage": float, "missing": str, "max_gap": str}  # settings, and their types


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
    known = {"source": "source"}
    for each in context.command.params:
        known |= {name[2:]: str(each.name) for name in each.opts if name.startswith("--") and name != "--config"}
    multiple = {each.name for each in context.command.params if getattr(each, "multiple", False) or each.nargs == -1}
    defaults: dict[str, Any] = {}
    for key, value in found.items():
        name = known.get(key.replace("_", "-"))
        if name is None:
            raise click.BadParameter(f"{path} has the unknown key {key}{_close(key.replace('_', '-'), known)}")
        if isinstance(value, dict) or (isinstance(value, list) and name not in multiple and name != "signals"):
            raise click.BadParameter(f"{key} in {path} must be a single value, got {value!r:.60}")
        values = [str(each) for each in value] if isinstance(value, list) else [str(value)] if name in multiple else value
        defaults[name] = ",".join(values) if isinstance(value, list) and name not in multiple else values
    context.default_map = defaults
    return {pattern: _settings(path, pattern, settings) for pattern, settings in signals.items()}


def _settings(path: str, pattern: str, settings: Any) -> dict[str, Any]:
    """The settings of the signals that a pattern fits, checked."""
    from trueonline.streams.questions.durations import seconds
    from trueonline.streams.sources.cleaning import POLICIES

    checked: dict[str, Any] = {}
    for key, value in settings.items() if isinstance(settings, dict) else [("", settings)]:
        name = key.replace("-", "_")
        if name not in OF_SIGNALS:
            about = _close(key, dict.fromkeys(each.replace("_", "-") for each in OF_SIGNALS))
            raise click.BadParameter(f'{path}: [signals."{pattern}"] has the unknown key {key or value!r}{about}')
        try:
            checked[name] = seconds(str(value)) if name == "max_gap" else OF_SIGNALS[name](value)
            inside = checked[name] in POLICIES if name == "missing" else checked[name] > 0.0
            if not inside or (name in ("alert", "coverage") and checked[name] > 1.0):
                raise ValueError("out of range")
        except (TypeError, ValueError):
            raise click.BadParameter(f'{path}: {key} of [signals."{pattern}"] cannot be {value!r:.60}') from None
    return checked


def _close(key: str, known: dict[str, Any]) -> str:
    """A known key that is like another one, as the end of a message."""
    found = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {found[0]}?" if found else f"; known are {', '.join(sorted(known))}"
