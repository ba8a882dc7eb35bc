"""`trueonline learn`: interactive pages that explain the ideas, in a browser."""

from __future__ import annotations

import sys

import click

from trueonline.cli.errors import plain_errors


@click.command("learn")
@click.argument("page", required=False)
@click.option("--list", "as_list", is_flag=True, help="Print the names, titles and files of all pages, and open none.")
@click.option("--path", "as_path", is_flag=True, help="Print the file of the page instead of opening it.")
def command(page: str | None, as_list: bool, as_path: bool) -> None:
    """Open interactive pages that explain the methods.

    PAGE is traces, forward_backward, random_walk, memory, off_policy or step_sizes. Without it, a page opens that shows them
    all. The pages are files of this package. They need neither a server nor a network.
    """
    if as_list and (page is not None or as_path):
        raise click.UsageError(f"--list and {'PAGE' if page is not None else '--path'} cannot be combined: drop one.")
    with plain_errors("Stopped."):
        from trueonline.lab import explorables

        if as_list:
            click.echo(explorables.listing())
            return
        path = explorables.find(page)
        if as_path or explorables.show(path):
            click.echo(path)
            return
    click.echo(path)
    click.echo("No browser could be opened here. Open this file in a browser.", err=True)
    sys.exit(1)
