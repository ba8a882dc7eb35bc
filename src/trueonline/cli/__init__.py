"""The command `trueonline`: a group that imports a command when it is asked for.

Each file of this folder that `COMMANDS` names holds one command: its options, its help, and one call to the part of the
package that does the work. Commands import that part late, so `--help` imports neither NumPy nor Numba.
"""

from __future__ import annotations

import atexit
import gc
from importlib import import_module
from typing import Any

import click

from trueonline import __version__
from trueonline.platforms import print_any_character

COMMANDS = ("verify", "derive", "sweep", "reproduce", "train", "asterix", "atari", "predict", "live", "learn")


class Commands(click.Group):
    """A group whose commands are the files of this folder, and what else is added to it: `NAME.py` holds NAME as `command`."""

    def main(self, *args: Any, **options: Any) -> Any:
        print_any_character()
        atexit.register(gc.freeze)  # to collect the objects of the compiler one last time would take half a second
        # On Windows click would expand patterns, also in quotes. Sources do that themselves, in natural order.
        return super().main(*args, **{"windows_expand_args": False, **options})

    def list_commands(self, context: click.Context) -> list[str]:
        return [*COMMANDS, *super().list_commands(context)]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return super().get_command(context, name)
        command: click.Command = import_module(f"trueonline.cli.{name}").command
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """True online temporal-difference learning: exact, fast, and checked against its definition."""


if __name__ == "__main__":
    main()
