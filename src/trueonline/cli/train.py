"""`trueonline train`: an agent in a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from trueonline import catalog
from trueonline.cli import options
from trueonline.cli.errors import plain_errors


@click.command("train", short_help="Train an agent in a Gymnasium environment.")
@click.argument("environment", required=False, metavar="ENV")
@options.listing("registered environments that can be trained on here")
@options.method_choice(catalog.agents(), "true_online_sarsa")
@click.option(
    "--agent",
    type=click.Choice(["stream-q", "stream-sarsa", "stream-ac"]),
    help="An agent that learns a network, instead of --method. α, λ and ε are then 1, 0.8 and from 1 to 0.01 by default.",
)
@options.step_size(0.5, "It is divided by the number of active features, so that 1 goes all the way to a target.")
@click.option("--raw-step-size", is_flag=True, help="Take --step-size as it is, without dividing it.")
@options.trace_decay
@click.option("--discount", default=0.99, show_default=True, type=float, help="γ.")
@click.option("--epsilon", default=0.1, show_default=True, type=float, help="ε: the probability of a random action.")
@click.option("--epsilon-final", type=float, help="Let ε change to this number, linearly, in --epsilon-steps.")
@click.option("--epsilon-steps", type=click.IntRange(1), help="How many steps ε takes to reach --epsilon-final.")
@click.option(
    "--features",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "table", "tiles", "fourier", "bits"]),
    help="auto: a table if states are numbered, tiles if observations are numbers, bits if they are bits.",
)
@click.option("--bins", type=click.IntRange(1), help="Tiles: into how many each dimension is divided.")
@click.option("--tilings", type=click.IntRange(1), help="Tiles: how many grids, shifted against each other.")
@click.option("--order", type=click.IntRange(1), help="Fourier: how many half waves at most in each dimension.")
@click.option("--hidden", metavar="N,N", help="--agent: units of each hidden layer.  [default: 32,32]")
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A further argument of the agent, such as meta_step_size=0.01, or eta, the ratio of the second step-size to the first.",
)
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="For the environment; may be repeated.")
@click.option("--episodes", default=500, show_default=True, type=click.IntRange(1), help="Number of training episodes.")
@click.option("--runs", default=1, show_default=True, type=click.IntRange(1), help="Independent runs, side by side.")
@click.option("--evaluate", default=20, show_default=True, type=click.IntRange(0), help="Greedy episodes afterwards.")
@options.seed()
@click.option("--film/--no-film", default=True, show_default=True, help="Film a greedy episode of the first run.")
@options.folder(None, "  [default: train/ENV]")
@options.engine()
@options.threads("Runs at a time")
@click.pass_context
def command(context: click.Context, environment: str | None, listing: bool, agent: str | None, **given: Any) -> None:
    """Train an agent in the Gymnasium environment ENV. Actions must be discrete, but for --agent stream-ac.

    ENV is a registered name, or module:Name for an environment that your own module registers. The command looks for the
    module in the current folder too.

    \b
    Examples:
      trueonline train CartPole-v1
      trueonline train MountainCar-v0 --discount 1 --epsilon 0 --runs 10
      trueonline train FrozenLake-v1 --option is_slippery=false
      trueonline train Acrobot-v1 --agent stream-q
      trueonline train MinAtar/Breakout-v1           (after: pip install minatar)

    OUT gets episodes.csv and .parquet (the return of every episode), evaluation.csv and .parquet (returns of greedy
    episodes without learning), curve.png, film.gif, settings.json, and agent.npz, the first run's agent, for
    trueonline.load.

    After Ctrl-C or a crash, run the same command again: it resumes from the last checkpoint and gives the same results
    bit for bit. To train longer, ask for more --episodes: a training that is finished resumes after its last episode.
    More --runs may be added too. A folder with results of other settings is left alone.
    """
    with plain_errors("Stopped. Run the same command again to resume from the last checkpoint.", extra="gym"):
        from trueonline.control.gym.train import command as train_command

        if listing:
            train_command.print_environments()
        elif environment is None:
            raise click.UsageError("Missing argument 'ENV'; --list shows what there is.")
        else:
            if agent is not None:
                given |= _of_network(context, agent)
            train_command.run(environment, **given)


def _of_network(context: click.Context, agent: str) -> dict[str, Any]:
    """The method of an agent with a network, and its defaults for what nobody gave."""
    from trueonline.control.gym.network_agents import EXPLORING, PUBLISHED

    def is_given(name: str) -> bool:
        return context.get_parameter_source(name) is not ParameterSource.DEFAULT

    if is_given("method"):
        raise click.UsageError("--agent and --method cannot be combined: drop one.")
    exploring = {} if agent == "stream-ac" or any(map(is_given, EXPLORING)) else EXPLORING
    settings = {name: value for name, value in {**PUBLISHED, **exploring}.items() if not is_given(name)}
    return {"method": agent.replace("-", "_"), **settings}
