"""The text of a signal, such as `envelope(velocity(x), 200ms)`, and its meaning: a column and the functions of it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

VELOCITY, LOWPASS, ENVELOPE, LAG = range(4)
FUNCTIONS: dict[str, str] = {
    "velocity": "velocity(x) or velocity(x, τ)",
    "lowpass": "lowpass(x, τ)",
    "envelope": "envelope(x) or envelope(x, τ)",
    "lag": "lag(x, s)",
}
ENVELOPE_SECONDS = 0.2  # the default

_CALL = re.compile(rf"({'|'.join(FUNCTIONS)})\((.*)\)", re.DOTALL)
_SECONDS = re.compile(r"([0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\s*(s|ms)?", re.ASCII)


@dataclass(frozen=True)
class Expression:
    """A column and the functions called on it, the innermost first, each with its seconds (None: without)."""

    column: str
    calls: tuple[tuple[str, float | None], ...] = ()

    @classmethod
    def of(cls, text: str) -> Expression:
        """The expression that a text stands for."""
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"a signal must be the name of a column or a function of one, got {text!r}")
        calls, inner = [], text
        while match := _CALL.fullmatch(inner.strip()):
            function, (inner, *more) = match[1], split(match[2])
            calls.append((function, _argument(function, more, text)))
            if not inner:
                raise ValueError(f"{function} needs a signal, got {text!r}; known is {FUNCTIONS[function]}")
        return cls(inner, tuple(reversed(calls)))

    def __str__(self) -> str:
        name = self.column
        for function, seconds in self.calls:
            name = f"{function}({name})" if seconds is None else f"{function}({name}, {number_text(seconds)})"
        return name

    def steps(self) -> list[tuple[int, float]]:
        """The operations on the column, in order, each with its seconds."""
        steps = []
        for function, seconds in self.calls:
            if function == "velocity":
                steps.append((VELOCITY, 0.0))
            if seconds is not None:
                steps.append(({"envelope": ENVELOPE, "lag": LAG}.get(function, LOWPASS), seconds))
        return steps


def _argument(function: str, arguments: list[str], text: str) -> float | None:
    """The seconds that a function is called with."""
    if len(arguments) > 1:
        raise ValueError(f"{function} takes a signal and a time, got {text!r}; known is {FUNCTIONS[function]}")
    if not arguments:
        if function in ("lowpass", "lag"):
            raise ValueError(
                f"{function} needs a time, got {text!r}; write {FUNCTIONS[function]}, with a time such as 0.2s"
            )
        return ENVELOPE_SECONDS if function == "envelope" else None
    try:
        return seconds(arguments[0])
    except ValueError as error:
        raise ValueError(f"the time of {function}: {error}, in {text!r}; known is {FUNCTIONS[function]}") from None


def seconds(text: str) -> float:
    """Read a time as people write it, in seconds.

    Parameters
    ----------
    text : str
        A number, alone or followed by s or ms.

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
    >>> seconds("0.2"), seconds("2s"), seconds("500ms")
    (0.2, 2.0, 0.5)
    """
    match = _SECONDS.fullmatch(text)
    try:
        value = float(match[1]) / (1e3 if match[2] == "ms" else 1.0) if match else math.nan
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise ValueError(f"a time must be seconds > 0, such as 0.2, 0.2s or 200ms, got {text!r}")
    return value


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number: 2.0 becomes 2."""
    return repr(float(value)).removesuffix(".0")


def spelling(text: str) -> str:
    """The one spelling of an expression in `Signals.names`.

    >>> spelling("envelope( velocity(force (N),100ms) )")
    'envelope(velocity(force (N), 0.1), 0.2)'
    """
    return str(Expression.of(text))


def split(text: str) -> list[str]:
    """Split a list of expressions at its commas. Commas within parentheses do not count.

    >>> split("a, force (N), velocity(x, 0.1)")
    ['a', 'force (N)', 'velocity(x, 0.1)']
    """
    depth = [0] * (len(text) + 1)
    opened = []
    for i, each in enumerate(text):
        if each == "(":
            opened.append(i)
        elif each == ")" and opened:  # one without a partner is part of a name
            depth[opened.pop()] += 1
            depth[i] -= 1
    parts, begin, level = [], 0, 0
    for i, each in enumerate(text):
        level += depth[i]
        if each == "," and level == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [*parts, text[begin:].strip()]
