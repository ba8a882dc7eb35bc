"""The commands `asterix` and `atari`: one run, with a bar while it plays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from trueonline.control import atari
from trueonline.terminal import progress_bar
from trueonline.words import count

SCALING = "α is divided by the largest number of active features so far (now {divisor})"


def play(
    game: str, *, background: str | None, checkpoint: str | None, as_json: bool, fixed_step_size: bool, **given: Any
) -> str:
    """Play one run as the options of the command say. Return what to print."""
    run = run_of(atari.AtariSettings(game=game, scaled=not fixed_step_size, **given), background, checkpoint)
    return json_text(run) if as_json else as_text(run)


def run_of(settings: atari.AtariSettings, background: str | None, checkpoint: str | None) -> atari.AtariRun:
    """Play a run, with a bar where there is a terminal.

    Without a file, the background is learned from random play, and is the same for every run.
    """
    game = settings.game
    screen = atari.learn_background(game) if background is None else atari.read_background(background)
    run = atari.AtariRun(settings, screen)
    if checkpoint is not None:
        if Path(checkpoint).exists():
            run.resume(checkpoint)
        run.save(checkpoint)  # that it can be written must be known before hours of play
    with progress_bar("{task.description}", "Bar", "{task.fields[state]}", "TimeElapsed", transient=True) as bar:
        total = settings.frames or settings.episodes
        line = bar.add_task(game, total=total, state="")

        def beat(frames: int) -> None:
            done = frames if settings.episodes is None else len(run.episodes)
            scores = f"{len(run.episodes):,} episodes, mean score {run.mean_score:,.0f}"
            bar.update(line, completed=min(done, total or done), state=f"{frames:,} frames, {scores}")

        run.play(checkpoint, beat=beat)
    if checkpoint is not None:
        run.save(checkpoint)
    return run


def json_text(run: atari.AtariRun) -> str:
    """The run as one JSON object."""
    return json.dumps(
        {"episodes": run.episodes, "mean_score": run.mean_score, "settings": described(run)}, ensure_ascii=False
    )


def described(run: atari.AtariRun) -> dict[str, Any]:
    """Everything that determined the run."""
    return {
        **run.about(),
        "discount": atari.DISCOUNT,
        "epsilon": atari.EPSILON,
        "actions": len(run.emulator.actions),
        "frames_per_action": 5,
        "frames_per_episode_at_most": run.limit,
        "step_size_divisor": getattr(run.player, "divisor", None) if run.settings.scaled else None,
        "diverged": run.diverged,
    }


def as_text(run: atari.AtariRun) -> str:
    """The settings and the scores, for people."""
    settings, scores = run.settings, [score for score, _ in run.episodes]
    numbers = "" if settings.method == "random" else f", α = {settings.step_size:g}, λ = {settings.trace_decay:g}"
    rule = f"{settings.method}{numbers}"
    lines = [f"{settings.game}, protocol {settings.protocol}, {rule}, seed {settings.seed}"]
    if settings.scaled and settings.method != "random":
        lines.append(SCALING.format(divisor=getattr(run.player, "divisor", 1)))
    if scores:
        lines.append(
            f"{count(len(scores), 'episode')} in {run.played:,} frames: "
            f"mean score {run.mean_score:,.1f}, best {max(scores):,}"
            + (f", last ten {np.mean(scores[-10:]):,.1f}" if len(scores) > 10 else "")
        )
    if run.diverged:
        lines.append("The weights diverged.")
    return "\n".join(lines)
