"""What a training looks like: the learning curve, and a film of the policy."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from trueonline.control.gym.environments import FILM, Features, Seed, entropy, fitting, make
from trueonline.control.gym.evaluation import LONGEST, play
from trueonline.control.policies import Greedy
from trueonline.files import write_whole
from trueonline.inputs import count
from trueonline.report.look import figure, look

GREEN = "#009E73"
FRAMES = 300  # in a film, at most
WIDTH = 480  # pixels of the longer side of a film, at most
FEW = 5  # runs; of fewer, an interval would fill the picture and say nothing
WINDOW = 100  # episodes in a running mean, at most

# Student's t at 97.5 %, for 1, 2, … degrees of freedom.
T = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120)
T_FROM = ((17, 2.11), (20, 2.086), (25, 2.06), (30, 2.042), (40, 2.021), (60, 2.0), (120, 1.98))


# --- The curve ------------------------------------------------------------------------------------


def running_mean(returns: Any, window: int) -> np.ndarray:
    """The mean of the last `window` numbers at each place; of those that there are, at the beginning.

    >>> running_mean([1.0, 3.0, 5.0, 7.0], 2)
    array([1., 2., 4., 6.])
    """
    sums = np.concatenate([[0.0], np.cumsum(returns, dtype=float)])
    ends = np.arange(1, len(sums))
    begins = np.maximum(ends - window, 0)
    return (sums[ends] - sums[begins]) / (ends - begins)


def curve(
    path: str | os.PathLike, returns: Any, *, title: str = "", window: int | None = None, label: str = "return"
) -> None:
    """Draw returns over episodes: of one run, given as an array, or of several that are equally long, given as a list.

    One run: every return thin, and bold the mean of the last `window` (by default a twentieth of the episodes, 100 at
    most). Several: their running means thin, and bold the mean of these over the runs, with its 95 % interval (Student's
    t, at each episode by itself) where there are at least five. The ending of the path says what kind of picture it is.
    """
    runs = np.atleast_2d(np.asarray(returns, float))
    if runs.ndim != 2 or runs.shape[1] == 0:
        raise ValueError(f"returns must be those of one run, or of several that are equally long, got shape {runs.shape}")
    episodes = runs.shape[1]
    window = max(1, min(WINDOW, episodes // 20)) if window is None else count("window", window)
    try:
        with look():
            made = _drawn(runs, window, title, label)
            ending = Path(path).suffix[1:] or "png"
            write_whole(path, partial(made.savefig, format=ending))
    except ImportError:
        raise ValueError("a curve needs matplotlib: pip install 'trueonline[study]'") from None


def _drawn(runs: np.ndarray, window: int, title: str, label: str) -> Any:
    made, ((axes,),) = figure(1, 1, width=6.4, height=3.8)
    number = np.arange(1, runs.shape[1] + 1)
    means = np.array([running_mean(run, window) for run in runs])
    thin = {"color": GREEN, "solid_joinstyle": "round", "zorder": 2}
    marker = {"marker": "o", "markersize": 3} if len(number) == 1 else {}
    smoothed = f"mean of the last {window}" if window > 1 else ""
    if len(runs) == 1:
        if window > 1:
            axes.plot(number, runs[0], linewidth=0.5, alpha=0.4, label="each episode", **thin)
        axes.plot(number, means[0], color=GREEN, linewidth=1.8, label=smoothed or "each episode", **marker)
    else:
        middle = means.mean(axis=0)
        spread = t_value(len(runs)) * means.std(axis=0, ddof=1) / np.sqrt(len(runs))
        axes.plot(number, middle, color=GREEN, linewidth=1.8, label=f"mean of {len(runs)} runs", zorder=3, **marker)
        if len(runs) >= FEW:
            band = {"color": GREEN, "alpha": 0.18, "linewidth": 0, "label": "its 95 % interval"}
            axes.fill_between(number, middle - spread, middle + spread, **band)
        shown = f" ({smoothed})" if smoothed else ""
        for i, each in enumerate(means):
            axes.plot(number, each, linewidth=0.6, alpha=0.5, label=f"each run{shown}" if i == 0 else None, **thin)
        low, high = float(means.min()), float(means.max())  # with few runs the band is wide: the lines matter more
        room = 0.06 * (high - low) or 1.0
        axes.set_ylim(low - room, high + room)
    axes.set(xlabel="episode", ylabel=label, title=title)
    if len(number) > 1:
        axes.set_xlim(1, len(number))
    if window > 1 or len(runs) > 1:
        made.legend(loc="outside lower center", ncols=3)
    return made


def t_value(runs: int) -> float:
    """Student's t for a 95 % interval of the mean of so many runs (rounded up between those that tables give)."""
    freedom = runs - 1
    if freedom <= len(T):
        return T[freedom - 1]
    return next(value for at_least, value in reversed(T_FROM) if freedom >= at_least)


# --- The film -------------------------------------------------------------------------------------


def film(
    env: str,
    agent: Any,
    features: Features,
    path: str | os.PathLike,
    *,
    seed: Seed = 0,
    options: dict[str, Any] | None = None,
    frames: int = FRAMES,
    width: int = WIDTH,
    max_steps: int = LONGEST,
) -> float:
    """Film one greedy episode in the environment of this name; return what the episode brought.

    A path that ends in .gif needs Pillow (which comes with matplotlib), one that ends in .mp4 the program ffmpeg or the
    package imageio-ffmpeg. Of a long episode only every n-th picture is taken, so that there are at most `frames`;
    pictures whose longer side exceeds `width` are made smaller. `options` go to `gymnasium.make`. The agent does not learn
    and is left as it was. An environment that cannot be drawn is a ValueError.
    """
    target, seed, frames = Path(path), entropy(seed), count("frames", frames)
    max_steps, width = count("max_steps", max_steps), count("width", width)
    write = _writer(target)
    _prepare_pygame()
    made = _drawable(env, options or {})
    try:
        first = fitting(made, agent, features)
        episode = partial(play, made, agent, features, Greedy(), first, (FILM, 0, seed))
        total, length, _ = episode(max_steps)  # the same every time: this one is to know how long it is
        stride = -(-length // max(frames - 1, 1))
        pictures: list[Any] = []

        def seen(step: int) -> None:
            if step == length or step % stride == 0:
                pictures.append(_picture(made, env, width))

        episode(length, seen)
        speed = min(max(float(made.metadata.get("render_fps") or 30), 2.0), 30.0)
    finally:
        made.close()
    write(pictures, speed)
    return total


def _prepare_pygame() -> None:
    """pygame draws what Gymnasium's own environments look like; where there is no screen, it must be told so."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def _drawable(env: Any, options: dict[str, Any]) -> Any:
    """The environment in the mode in which it draws; ValueError if it has none."""
    if not isinstance(env, str):
        raise ValueError(f"a film needs the name of an environment, to make one that draws, got {type(env).__name__}")
    plain = make(env, **options)
    modes = plain.metadata.get("render_modes") or []
    plain.close()
    if "rgb_array" not in modes:
        raise ValueError(f"{env} cannot be filmed: it draws no pictures (its render modes are {list(modes)})")
    return make(env, **{**options, "render_mode": "rgb_array"})


def _picture(made: Any, name: str, width: int) -> Any:
    from PIL import Image

    try:
        drawn = np.asarray(made.render())
    except Exception as error:  # whatever an environment's own code comes up with
        raise ValueError(f"{name} cannot be filmed: {error}") from error
    if drawn.ndim != 3 or drawn.shape[2] != 3 or drawn.dtype != np.uint8:
        raise ValueError(f"{name} cannot be filmed: its pictures are {drawn.dtype} of shape {drawn.shape}, not RGB")
    picture = Image.fromarray(drawn)
    scale = width / max(picture.size)
    if scale < 1.0:
        size = [max(2, round(side * scale)) for side in picture.size]
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    return picture


def _writer(path: Path) -> Callable[[list[Any], float], None]:
    """What writes pictures to this path; ValueError where that cannot be done, before anything is played."""
    if path.suffix == ".gif":
        try:
            import PIL  # noqa: F401
        except ImportError:
            raise ValueError("a film needs Pillow: pip install 'trueonline[gym]'") from None
        return partial(_write_gif, path)
    if path.suffix == ".mp4":
        return partial(_write_mp4, path, _ffmpeg())
    raise ValueError(f"a film must end in .gif or .mp4, got {path.name!r}")


def _write_gif(path: Path, pictures: list[Any], speed: float) -> None:
    """One palette for all pictures, so that what does not change from one to the next takes no room."""
    from PIL import Image

    some = pictures[:: -(-len(pictures) // 16)]
    wide, high = some[0].size
    together = Image.new("RGB", (wide, high * len(some)))
    for i, picture in enumerate(some):
        together.paste(picture, (0, i * high))
    palette = together.quantize(256, Image.Quantize.FASTOCTREE)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    pause = round(100.0 / speed) * 10  # milliseconds; the format counts hundredths of a second
    durations = [pause] * (len(frames) - 1) + [max(pause, 1500)]  # the end may be looked at
    options = {"save_all": True, "append_images": frames[1:], "duration": durations, "loop": 0}
    write_whole(path, lambda file: frames[0].save(file, format="GIF", **options))


def _write_mp4(path: Path, program: str, pictures: list[Any], speed: float) -> None:
    wide, high = pictures[0].size
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{wide}x{high}", "-r", f"{speed:g}", "-i", "-"]
    even = "pad=ceil(iw/2)*2:ceil(ih/2)*2"  # which the pixel format that every player knows asks for
    with tempfile.TemporaryDirectory() as folder:
        wanted = ["-an", "-vf", even, "-pix_fmt", "yuv420p", "-movflags", "+faststart", f"{folder}/film.mp4"]
        content = b"".join(picture.tobytes() for picture in pictures)
        done = subprocess.run([program, "-v", "error", *given, *wanted], input=content, capture_output=True, check=False)
        if done.returncode != 0:
            raise ValueError(f"ffmpeg could not write {path}: {done.stderr.decode(errors='replace').strip()}")
        write_whole(path, lambda file: file.write(Path(folder, "film.mp4").read_bytes()))


def _ffmpeg() -> str:
    found = shutil.which("ffmpeg")
    if found is not None:
        return found
    try:
        return import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        raise ValueError(
            "a film that ends in .mp4 needs the program ffmpeg, or pip install imageio-ffmpeg; one that ends in .gif does not"
        ) from None
