"""The text of a signal, such as `envelope(velocity(x), 200ms)`, and its meaning: a column and the functions of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trueonline.streams.questions.durations import seconds
from trueonline.words import shortest

VELOCITY, LOWPASS, ENVELOPE, LAG = range(4)
FUNCTIONS: dict[str, str] = {
    "velocity": "velocity(x) or velocity(x, τ)",
    "lowpass": "lowpass(x, τ)",
    "envelope": "envelope(x) or envelope(x, τ)",
    "lag": "lag(x, s)",
    "hour": "hour(time)",
    "weekday": "weekday(time)",
}
CALENDAR = ("hour", "weekday")  # functions of the sample's own time, which are like columns
ENVELOPE_SECONDS = 0.2  # the default

_CALL = re.compile(rf"({'|'.join(FUNCTIONS)})\((.*)\)", re.DOTALL)
_QUOTED = re.compile(r'(?:^|(?<=[,(]))\s*"[^"]*"\s*(?=[,)]|$)')


@dataclass(frozen=True)
class Expression:
    """A column and the functions called on it, the innermost first, each with its seconds (None: without).

    A function of the calendar is a column itself: "hour(time)".
    """

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
            if function in CALENDAR:
                if [inner, *more] != ["time"]:
                    raise ValueError(f"{function} is of the sample's own time, got {text!r}; write {FUNCTIONS[function]}")
                inner = FUNCTIONS[function]
                break
            calls.append((function, _argument(function, more, text)))
            if not inner:
                raise ValueError(f"{function} needs a signal, got {text!r}; known is {FUNCTIONS[function]}")
        return cls(inner, tuple(reversed(calls)))

    def __str__(self) -> str:
        name = self.column
        if self.calls and len(split(name)) > 1:
            name = f'"{name}"'
        for function, time in self.calls:
            name = f"{function}({name})" if time is None else f"{function}({name}, {shortest(time)})"
        return name

    def steps(self) -> list[tuple[int, float]]:
        """The operations on the column, in order, each with its seconds."""
        steps = []
        for function, time in self.calls:
            if function == "velocity":
                steps.append((VELOCITY, 0.0))
            if time is not None:
                steps.append(({"envelope": ENVELOPE, "lag": LAG}.get(function, LOWPASS), time))
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


def spelling(text: str) -> str:
    """The one spelling of an expression in `Signals.names`.

    >>> spelling("envelope( velocity(force (N),100ms) )")
    'envelope(velocity(force (N), 0.1), 0.2)'
    """
    return str(Expression.of(text))


def split(text: str) -> list[str]:
    """Split a list of expressions at its commas. Commas within parentheses do not count, nor those in a name in quotes.

    >>> split('a, force (N), velocity(x, 0.1), "force, left"')
    ['a', 'force (N)', 'velocity(x, 0.1)', 'force, left']
    """
    depth = [0] * (len(text) + 1)
    opened = []
    masked = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text)
    for i, each in enumerate(masked):
        if each == "(":
            opened.append(i)
        elif each == ")" and opened:  # one without a partner is part of a name
            depth[opened.pop()] += 1
            depth[i] -= 1
    parts, begin, level = [], 0, 0
    for i, each in enumerate(masked):
        level += depth[i]
        if each == "," and level == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    parts.append(text[begin:].strip())
    return [part[1:-1] if _QUOTED.fullmatch(part) else part for part in parts]
