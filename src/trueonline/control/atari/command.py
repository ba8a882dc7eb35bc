"""What the commands `asterix` and `atari` do: one run, with a bar while it plays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from trueonline.control import atari

SCALING = "α is divided by the largest number of active features so far (now {divisor})"


def background(game: str, path: str | None) -> np.ndarray:
    """From a file; otherwise learned from random play, the same for every run."""
    return atari.learn_background(game) if path is None else atari.read_background(path)


def run(settings: atari.Settings, path: str | None, checkpoint: str | None) -> atari.Run:
    """Play a run, and show how it goes where there is a terminal."""
    found = atari.Run(settings, background(settings.game, path))
    if checkpoint is not None:
        if Path(checkpoint).exists():
            found.resume(checkpoint)
        found.save(checkpoint)  # that it can be written must be known before hours of play
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        total = settings.frames or settings.episodes
        line = bar.add_task(settings.game, total=total, state="")

        def beat(frames: int) -> None:
            done = frames if settings.episodes is None else len(found.episodes)
            scores = f"{len(found.episodes):,} episodes, mean score {found.mean_score:,.0f}"
            bar.update(line, completed=min(done, total or done), state=f"{frames:,} frames, {scores}")

        found.play(checkpoint, beat=beat)
    if checkpoint is not None:
        found.save(checkpoint)
    return found


def as_json(found: atari.Run) -> str:
    return json.dumps(
        {"episodes": found.episodes, "mean_score": found.mean_score, "settings": described(found)}, ensure_ascii=False
    )


def described(found: atari.Run) -> dict[str, Any]:
    """Everything that determined the run, said out loud."""
    return {
        **found.about(),
        "discount": atari.DISCOUNT,
        "epsilon": atari.EPSILON,
        "actions": len(found.emulator.actions),
        "frames_per_action": 5,
        "frames_per_episode_at_most": found.limit,
        "step_size_divisor": getattr(found.player, "divisor", None) if found.settings.scaled else None,
        "diverged": found.diverged,
    }


def as_text(found: atari.Run) -> str:
    """What a person wants to know."""
    settings, scores = found.settings, [score for score, _ in found.episodes]
    numbers = "" if settings.method == "random" else f", α = {settings.step_size:g}, λ = {settings.trace_decay:g}"
    rule = f"{settings.method}{numbers}"
    lines = [f"{settings.game}, protocol {settings.protocol}, {rule}, seed {settings.seed}"]
    if settings.scaled and settings.method != "random":
        lines.append(SCALING.format(divisor=getattr(found.player, "divisor", 1)))
    if scores:
        lines.append(
            f"{len(scores):,} episode{'s' * (len(scores) > 1)} in {found.played:,} frames: "
            f"mean score {found.mean_score:,.1f}, best {max(scores):,}"
            + (f", last ten {np.mean(scores[-10:]):,.1f}" if len(scores) > 10 else "")
        )
    if found.diverged:
        lines.append("The weights diverged.")
    return "\n".join(lines)
