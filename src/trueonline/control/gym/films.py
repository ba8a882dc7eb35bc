"""A film of the greedy policy, as a GIF or an MP4."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from trueonline.control.gym.environments import FILM, Features, Seed, entropy, fitting, make
from trueonline.control.gym.evaluation import MAX_STEPS, play
from trueonline.control.policies import Greedy
from trueonline.files import write_whole
from trueonline.inputs import count
from trueonline.optional import optional

FRAMES = 300  # in a film, at most
WIDTH = 480  # pixels of the longer side of a film, at most


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
    max_steps: int = MAX_STEPS,
) -> float:
    """Film one greedy episode. The agent does not learn and is left exactly as it was.

    Parameters
    ----------
    env : str
        The registered name of the environment.
    agent : Agent
        An agent of `trueonline.control`, or an object with its methods.
    features : callable
        It makes the features x of an observation.
    path : path-like
        The film. An ending of .gif needs Pillow, which comes with matplotlib. An ending of .mp4 needs the program ffmpeg
        or the package imageio-ffmpeg.
    seed : int or sequence of int
        Determines how the episode begins and how ties are broken.
    options : dict, optional
        For `gymnasium.make`.
    frames : int
        Pictures in the film, at most. Only every n-th picture of a long episode is taken.
    width : int
        Pixels of the longer side, at most.
    max_steps : int
        A longer episode is truncated there.

    Returns
    -------
    float
        The return of the episode.

    Raises
    ------
    ValueError
        If the environment draws no pictures, or the film cannot be written.
    """
    target, seed, frames = Path(path), entropy(seed), count("frames", frames)
    max_steps, width = count("max_steps", max_steps), count("width", width)
    write = _writer(target)
    _prepare_pygame()
    made = _drawable(env, options or {})
    try:
        execute = fitting(made, agent, features)
        episode = partial(play, made, agent, features, Greedy(), execute, (FILM, 0, seed))
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
    """Prepare pygame, which draws Gymnasium's own environments, for machines without a screen."""
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
        with warnings.catch_warnings():  # Gymnasium remarks on the way in which some environments draw
            warnings.simplefilter("ignore", UserWarning)
            drawn = np.asarray(made.render())
    except Exception as error:  # an environment's own code may raise anything
        raise ValueError(f"{name} cannot be filmed: {error}") from error
    if drawn.dtype.kind == "f" and drawn.size and drawn.min() >= 0.0 and drawn.max() <= 1.0:
        drawn = np.round(255.0 * drawn).astype(np.uint8)  # as matplotlib has colours, and MinAtar
    if drawn.ndim != 3 or drawn.shape[2] != 3 or drawn.dtype != np.uint8:
        raise ValueError(f"{name} cannot be filmed: its pictures are {drawn.dtype} of shape {drawn.shape}, not RGB")
    picture = Image.fromarray(drawn)
    scale = width / max(picture.size)
    if scale < 1.0:
        size = [max(2, round(side * scale)) for side in picture.size]
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    elif scale >= 4.0:  # a few pixels, as MinAtar has: each becomes a square
        picture = picture.resize([int(scale / 2.0) * side for side in picture.size], Image.Resampling.NEAREST)
    return picture


def _writer(path: Path) -> Callable[[list[Any], float], None]:
    """The function that writes pictures to this path. ValueError if that is impossible, before anything is played."""
    if path.suffix == ".gif":
        optional("a film needs Pillow", "PIL", extra="gym")
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
