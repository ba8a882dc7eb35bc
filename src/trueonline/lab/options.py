"""Options of the command that only some experiments have. The module imports nothing heavy, so that help is quick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """An option of the command `trueonline reproduce`, declared by an experiment.

    Parameters
    ----------
    name : str
        The name on the command line, without the dashes, and in `Settings.options`.
    help : str
        The text of the command's help.
    kind : type
        The type of its value.
    least : int, optional
        The smallest value.
    choices : sequence of str
        The values that are allowed; any value if empty.
    metavar : str, optional
        The word for the value in the help.
    needs : str, optional
        Another option, without which this one has no meaning.
    everywhere : bool
        Every experiment of the call must have the option. Otherwise one of them is enough.
    """

    name: str
    help: str
    kind: type = str
    least: int | None = None
    choices: Sequence[str] = ()
    metavar: str | None = None
    needs: str | None = None
    everywhere: bool = False
