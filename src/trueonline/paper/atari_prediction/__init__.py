"""Beyond the paper: the Atari Prediction Benchmark. How well are the returns of recorded games predicted while learning?

`runs` has the methods and the tasks, `summary` compares the results, `pictures` draws them, and `claims` judges them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import csv

from trueonline import study
from trueonline.control.atari.prediction import N_ACTIVE, N_FEATURES, Replay, read_actions, recorded
from trueonline.paper.atari_prediction import claims, pictures, runs, summary
from trueonline.paper.experiment import Experiment, Outcome, Settings, Unfinished

TEXT = f"""A game is replayed from the recorded actions of a trained agent, and the discounted sum of its later rewards is
predicted (γ = {runs.DISCOUNT}, λ = {runs.TRACE_DECAY}). The figure of merit is the lifetime error, the mean over all frames of
(G − V)², from the first frame on. V is the prediction at a frame, made before learning from the reward that came with it. The
benchmark is that of Javed, Shah, Sutton and White (2023), with the features of SwiftTD (Javed, Sharifnassab and Sutton 2024).
There are {N_FEATURES:,} features, of which {N_ACTIVE:,} are active.

SwiftTD has the settings of its authors: α = 0.001 at first, η = 0.1, θ = 0.001, decay 0.999. Plain true online TD(λ) is run
with α = {", ".join(f"{share:g}" for share in runs.SHARES)}, each over the number of active features. The figures show the α
that is best over all games. The table has the best α of each game as well, which nobody could know beforehand. Adapted
step-sizes are those of TrueOnlineTD with bound = 0.1, meta_step_size = 0.1 and α = 0.1.

Rewards are the signs of the points, a reset of the game is not the end of an episode, and rewards after the last frame count
as 0. All three are as in the published program. Intervals are a bootstrap over games."""


def run(settings: Settings) -> Outcome:
    tasks = games(settings)
    missing = [task for task in tasks if study.read_task(task, settings.tasks) is None]
    if missing:
        settings.say(runs.estimate(missing, len(tasks), settings))
    options: dict[str, Any] = {"engine": settings.engine, "threads": settings.threads, "share": settings.share}
    study.execute_tasks(tasks, settings.tasks, **options, progress=settings.progress)
    results = study.gather_tasks(tasks, settings.tasks)
    if results is None:
        raise Unfinished(f"share {settings.share} of atari-prediction is done; others are not")
    rows = results.to_pylist()
    found = summary.summarise(rows, settings.seed)
    curves, predictions = summary.curve_rows(found), summary.prediction_rows(found)
    return Outcome(
        summary.data_of(rows),
        {"figure": pictures.ratios(found), "curves": pictures.curves(found), "predictions": pictures.predictions(found)},
        [pictures.curve_chart(curves), pictures.prediction_chart(predictions)],
        claims.judge(found),
        shown="figure",
        files={"curves.csv": _csv(curves), "predictions.csv": _csv(predictions)},
        note=summary.note(found),
        tables={
            "Lifetime error of SwiftTD in each game, and the errors of the others over it": summary.table_of_games(found)
        },
    )


def games(settings: Settings) -> list[runs.Game]:
    """A task for each game. All files are read and checked before the first task begins."""
    if settings.actions is None:
        raise ValueError("atari-prediction needs --actions, a folder with files of recorded actions such as Pong.txt.gz")
    frames = settings.frames or runs.FRAMES
    tasks = []
    for game, path in recorded(settings.actions, settings.games).items():
        actions = read_actions(path, frames)
        try:
            Replay(game, actions)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        tasks.append(runs.Game(game, actions, runs.COMPARED, frames))
    return tasks


def _csv(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


EXPERIMENT = Experiment("atari-prediction", "Atari Prediction Benchmark", TEXT, run)
