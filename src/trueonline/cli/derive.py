"""`trueonline derive`: the backward view of a forward view."""

from __future__ import annotations

import sys

import click

from trueonline.cli.errors import plain_errors


@click.command("derive")
@click.argument("file")
@click.option("--function", "name", help="Which function of FILE, if there are several.")
@click.option("--latex", is_flag=True, help="Print the equations for LaTeX.")
@click.option("--out", metavar="METHOD.py", help="Write the method to a new file, to read or to change.")
@click.option(
    "--trials",
    default=3,
    show_default=True,
    type=click.IntRange(0),
    help="Random streams of each kind to check the method on; 0 for none.",
)
def command(file: str, name: str | None, latex: bool, out: str | None, trials: int) -> None:
    """Derive the backward view of a forward view.

    FILE is Python with a function U(k, h, …). It returns the target of the update of time k when everything up to time h
    is known. It asks for what it needs by the names of its arguments: R[j], gamma[j], lam[j], rho[j], alpha[j], rbar[j],
    V(i, j), and for agents greedy[j] and V_max(i, j). A function step(k, …) in the same file gives the step-size if it is
    not alpha[k]. A function step(k, i, …) gives one for each feature: alpha[k, i]. A mapping parameters = {"cap": 1.0}
    names further arguments that are numbers. For example (the λ-return):

    \b
    def target(k, h, R, V, gamma, lam):
        if k + 1 == h:
            return R[h] + gamma[h] * V(k, h)
        rest = target(k + 1, h, R, V, gamma, lam)
        mixture = (1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * rest
        return R[k + 1] + gamma[k + 1] * mixture

    The command prints the equations, and the largest difference between the compiled method and the forward view at any
    step of random streams. If there is no backward view at a constant cost per step, the command says at which k and h,
    and the exit status is 1. The command runs FILE: use only files that you trust.
    """
    with plain_errors("Stopped.", extra="derive"):
        from trueonline.derivation import derive_command
        from trueonline.terminal import rounds_bar

        derive_command.check_new(out)
        derivation = derive_command.of_file(file, name)
        click.echo(derivation.latex() if latex else derive_command.as_text(derivation))
        click.echo(f"\n{derivation.check_line()}.", err=latex)
        exact = True
        if trials:
            with rounds_bar("Verifying", trials * len(derivation.kinds())) as advance:
                report = derivation.verify(trials=trials, progress=advance)
            click.echo(f"\n{report}", err=latex)
            exact = report.exact
        if exact and out is not None:
            derive_command.write(derivation, out)
            click.echo(f"The method is in {out}.", err=True)
    if not exact:
        sys.exit(1)
