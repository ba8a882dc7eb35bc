"""Times and rates as people write them: 90s, 15min, 1h; 40Hz, 1/300, 5min."""

from __future__ import annotations

import math
import re

from trueonline.words import TIME_UNITS

HERTZ = {"hz": 1.0, "khz": 1e3}

_WRITTEN = re.compile(r"\s*([0-9]*\.?[0-9]*(?:e[+-]?[0-9]+)?)\s*([a-z]*)\s*", re.ASCII | re.IGNORECASE)


def seconds(text: str) -> float:
    """Read a time as people write it, in seconds.

    Parameters
    ----------
    text : str
        A number, alone (seconds) or followed by ms, s, min, h or d.

    Returns
    -------
    float
        The seconds.

    Raises
    ------
    ValueError
        If the text is not a time larger than 0.

    Examples
    --------
    >>> seconds("2"), seconds("500ms"), seconds("15min"), seconds("1h"), seconds("1d")
    (2.0, 0.5, 900.0, 3600.0, 86400.0)
    """
    number, unit = _parts(text)
    value = _times(number, TIME_UNITS.get(unit or "s", math.nan))
    if not 0.0 < value < math.inf:
        raise ValueError(
            f"a time must be above 0, in seconds or with one of the units ms, s, min, h and d, such as 0.5, 15min or 1h, "
            f"got {text!r}"
        )
    return value


def rate(text: str) -> float:
    """Read a rate as people write it, in samples per second.

    Parameters
    ----------
    text : str
        Samples per second (40, 40Hz), a number of samples in a time (1/300, 12/1h), or the time from one sample to the next
        with its unit (5min).

    Returns
    -------
    float
        The samples per second.

    Raises
    ------
    ValueError
        If the text is not a rate larger than 0.

    Examples
    --------
    >>> rate("40"), rate("2kHz"), rate("12/1h") == rate("1/300") == rate("5min") == 1 / 300
    (40.0, 2000.0, True)
    """
    samples, sign, time = text.partition("/")
    number, unit = _parts(samples)
    try:
        if sign:
            value = _times(number, 1.0 if not unit else math.nan) / seconds(time)
        elif unit in TIME_UNITS:
            value = 1.0 / seconds(text)
        else:
            value = _times(number, HERTZ.get(unit or "hz", math.nan))
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise ValueError(
            f"a rate must be samples per second, such as 40 or 40Hz, or the time from one sample to the next, such as 5min or "
            f"1/300, got {text!r}"
        )
    return value


def _parts(text: str) -> tuple[float, str]:
    """The number and the unit of a text. NaN if it has no number."""
    match = _WRITTEN.fullmatch(text)
    try:
        return (float(match[1]), match[2].lower()) if match else (math.nan, "")
    except ValueError:
        return math.nan, ""


def _times(number: float, unit: float) -> float:
    """A number of units. A division rounds once where the unit is a fraction: 200 ms are 0.2 s."""
    return number / round(1.0 / unit) if unit < 1.0 else number * unit
