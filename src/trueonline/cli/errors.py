"""Errors that a user can repair become one line, and Ctrl-C says how to resume."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from trueonline.platforms import is_broken_pipe
from trueonline.words import printable


def say(text: str) -> None:
    """Print a line on standard error. It may have names from a file of somebody else."""
    click.echo(printable(text), err=True)


RESUME = "Stopped. Finished tasks are kept; run the same command again to resume."

# The extra of this package that brings a module. Extras in `SHARED` are parts of others: a command asks for its own.
EXTRAS = {
    "pyarrow": "study",
    "matplotlib": "study",
    "distributed": "dask",
    "gymnasium": "gym",
    "PIL": "gym",
    "ale_py": "atari",
    "sympy": "derive",
    "starlette": "live",
    "uvicorn": "live",
    "websockets": "live",
    "paho": "mqtt",
    "pylsl": "lsl",
    "scipy": "sparse",
}
SHARED = ("study", "gym")


@contextmanager
def plain_errors(stopped: str = RESUME, extra: str = "study") -> Iterator[None]:
    """Turn errors that a user can repair into one line on standard error.

    Parameters
    ----------
    stopped : str
        The text that Ctrl-C prints. It says how to resume.
    extra : str
        The extra that brings all packages which the command cannot do without.
    """
    try:
        yield
    except ImportError as error:
        raise click.ClickException(_missing(error, extra)) from None
    except (ValueError, OSError) as error:
        if is_broken_pipe(error):  # the reader of the output has gone, for example head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        raise click.ClickException(printable(str(error))) from None
    except KeyboardInterrupt:
        click.echo(f"\n{stopped}", err=True)
        sys.exit(130)


def _missing(error: ImportError, extra: str) -> str:
    brings = EXTRAS.get((error.name or "").partition(".")[0])
    if brings is None:  # a module of the user's own, or an error that says what to do
        return str(error)
    wanted = extra if brings in SHARED else brings
    return f"No module named {error.name!r}; this command needs an extra: pip install 'trueonline[{wanted}]'"
