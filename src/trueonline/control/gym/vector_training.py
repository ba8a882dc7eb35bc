"""`train_vector`: N independent agents learn in the N environments of a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from trueonline.control.gym import environments
from trueonline.control.gym.training import History, Training, limits, says_end

Callback = Callable[
    [int, int, float, int], object
]  # (the agent, its episodes so far, the return of the last, its length)


def train_vector(
    env: Any,
    agents: Sequence[Any],
    features: environments.Features,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    seed: environments.Seed | None = None,
    callback: Callback | None = None,
) -> list[Training]:
    """Let independent agents learn, each in its own environment of a Gymnasium vector environment.

    Agents share nothing. Each learns what it would learn alone by `train`, bit for bit, if its environment takes all randomness
    from the seed of `reset`. So this is for environments that are faster as a vector. To use all cores, `sweep` has processes.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
        The environments. They may not reset themselves, because `train_vector` gives each episode its seed:
        ``gymnasium.make_vec(name, num_envs=4, vector_kwargs={"autoreset_mode": "Disabled"})``.
    agents : sequence of Agent
        An agent for each environment.
    features : callable
        It makes the features x of the observation of one environment. All agents have the same.
    episodes : int, optional
        How many episodes each agent trains. An agent that is done waits for the others.
    steps : int, optional
        Train each agent until it has at least so many steps. With `episodes` too, the limit that is reached first counts.
    seed : int or sequence of int, optional
        Episode k of every agent is reset with a seed that depends on `seed` and k only. The default is the seed of each agent.
    callback : callable, optional
        It is called after each episode with the number of the agent, its episodes so far, the return of the last, and its length.
        If it returns True, the training of this agent ends.

    Returns
    -------
    list of Training
        The episodes of each agent.

    Raises
    ------
    TypeError
        If one of `agents` is not an agent.
    ValueError
        If environments, agents and features do not fit together.

    Examples
    --------
    >>> import gymnasium as gym, trueonline as to
    >>> env = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "Disabled"})
    >>> features = to.features.from_space(env.single_observation_space)
    >>> def agent(seed):
    ...     return to.control.TrueOnlineSarsa(features.n_features, 2, 0.5 / features.n_active, 0.9, 0.99, seed=seed)
    >>> several = to.control.train_vector(env, [agent(0), agent(1)], features, episodes=5)
    >>> alone = to.control.train("CartPole-v1", agent(1), features, episodes=5)
    >>> several[1].returns.tolist() == alone.returns.tolist()
    True
    """
    most, enough = limits(episodes, steps, callback)
    agents = list(agents) if isinstance(agents, Iterable) else [agents]
    gym = environments.gymnasium()
    if not isinstance(env, gym.vector.VectorEnv):
        raise ValueError(f"env must be a vector environment, as gymnasium.make_vec makes it, got {type(env).__name__}")
    if env.metadata.get("autoreset_mode") != gym.vector.AutoresetMode.DISABLED:
        raise ValueError(
            'the environments reset themselves: make them with vector_kwargs={"autoreset_mode": "Disabled"}, as train_vector gives '
            "each episode its seed"
        )
    if len(agents) != env.num_envs or len({*map(id, agents)}) < len(agents):
        raise ValueError(f"agents must be {env.num_envs} different agents, one for each environment, got {len(agents)}")
    one = SimpleNamespace(action_space=env.single_action_space, spec=env.spec, unwrapped=env.unwrapped)
    execute = [environments.fitting(one, agent, features) for agent in agents]
    seeds = [environments.entropy(environments.seed_of_agent(each) if seed is None else seed) for each in agents]
    histories, actions = [History() for _ in agents], [np.asarray(0)] * len(agents)
    totals, lengths = [0.0] * len(agents), [0] * len(agents)
    over, going = np.ones(len(agents), bool), np.ones(len(agents), bool)
    while going.any():
        if over.any():
            numbers = [len(history.returns) for history in histories]
            fresh = [environments.episode_seed(environments.TRAINING, *pair) for pair in zip(numbers, seeds, strict=True)]
            batch, _ = env.reset(seed=fresh, options={"reset_mask": over})
            observations = list(gym.vector.utils.iterate(env.observation_space, batch))
            for i in np.flatnonzero(over & going).tolist():
                actions[i] = execute[i](agents[i].start(features(observations[i])))
                totals[i], lengths[i] = 0.0, 0
        batch, rewards, terminated, truncated, _ = env.step(np.array(actions, env.single_action_space.dtype))
        observations, over = list(gym.vector.utils.iterate(env.observation_space, batch)), terminated | truncated
        for i in np.flatnonzero(going).tolist():
            agent, history, reward = agents[i], histories[i], float(rewards[i])
            totals[i], lengths[i] = totals[i] + reward, lengths[i] + 1
            try:
                if terminated[i]:
                    agent.end(reward)
                elif truncated[i]:
                    agent.truncate(reward, features(observations[i]))
                else:
                    actions[i] = execute[i](agent.step(reward, features(observations[i])))
            except ValueError as error:
                raise ValueError(f"in episode {len(history.returns) + 1} of agent {i}: {error}") from error
            if over[i]:
                history.add(totals[i], lengths[i], bool(terminated[i]))
                done = len(history.returns)
                ended = callback is not None and says_end(callback(i, done, totals[i], lengths[i]))
                going[i] = not (ended or (most and done >= most) or (enough and history.steps >= enough))
    return [history.frozen() for history in histories]
