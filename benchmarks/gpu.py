"""Sweeps on a GPU: the engine cuda beside the processor of the same machine, JAX, and CUDA C++ by hand."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import gpu_by_hand, gpu_jax
from benchmarks.gpu_problems import FIGURE_4, Errors, Group, Measured, groups, largest_difference
from benchmarks.report import Seconds, Section, Settings, Table, Target, short
from trueonline.study import Task

PATIENCE = 100.0  # seconds: a longer comparison is left out
REGISTERS = 65_536  # of a multiprocessor


def measure(settings: Settings) -> Section:
    try:
        from trueonline.study.engines.cuda.device import gpu

        device = gpu(0)
    except (ImportError, ValueError) as error:
        return Section("Sweeps on a GPU", f"Left out: {error}", [])
    many = (range(1, 4), 2) if settings.quick else (range(1, 101), 10)
    sweeps = {
        "Figure 4": groups(FIGURE_4, 2 if settings.quick else 50),
        f"{len(many[0])} MRPs of each class": groups(*many),
    }
    tables, targets, seconds = [], [], {}
    for name, some in sweeps.items():
        rows, ours = _compared(device, some)
        tables.append(Table((name, "seconds", "G steps/s", "against engine cuda", "its errors"), rows))
        seconds[name] = ours
    tables.append(_limits(device, list(sweeps.values())[1]))
    commands = _commands(settings.quick)
    tables.append(
        Table(("command", "seconds", "of which the sweep"), [(c, Seconds(a), Seconds(b)) for c, a, b in commands])
    )
    wanted = ((0.15, 3.0), (None, 5.0, 30.0))
    for (name, found), most in zip(seconds.items(), wanted[0], strict=True):
        targets.append(Target(f"{name}, with transfers", f"≤ {most:g} s", str(Seconds(found)), found <= most))
    for (command, whole, _), most in zip(commands, wanted[1], strict=True):
        if most is not None:
            targets.append(Target(command, f"≤ {most:g} s", str(Seconds(whole)), whole <= most))
    return Section(
        f"Sweeps on a GPU ({device.name})",
        "Seconds with transfers, the median of several rounds, in double precision. A step is one learner's transition with its "
        f"error. The processor has {os.cpu_count()} cores, all at work, and is timed once. JAX is what a user would write: vmap "
        "over α, λ and runs, scan over steps, jitted; its time to compile is apart. By hand is CUDA C++ for these three methods "
        "alone. Errors are compared with those of the processor, where they are below 1,000.",
        tables,
        targets=targets,
    )


def _compared(device: Any, some: Sequence[Group]) -> tuple[list[tuple], float]:
    """A row for each way to do a sweep, and the seconds of ours."""
    steps = sum(group.steps * len(group.methods) for group in some)
    names = [((*group.name, method), group, method) for group in some for method in group.methods]
    tasks = {name: _tasks(group, method) for name, group, method in names}
    expected, processor = _on_processor(tasks, some)
    ours = _on_device(device, tasks, some)
    same = sum(int((ours.errors[name] == values).sum()) for name, values in expected.items())
    whole = sum(values.size for values in expected.values())
    mine = median(ours.transfers)
    rows = [
        ("engine cuda", Seconds(mine), _rate(steps, mine), "1", f"{same:,} of {whole:,} the same bit for bit"),
        (
            f"engine local, {os.cpu_count()} threads",
            Seconds(processor),
            _rate(steps, processor),
            _times(processor, mine),
            "–",
        ),
    ]
    others: list[tuple[str, Callable[..., Measured], bool, str]] = [
        ("JAX", gpu_jax.measure, gpu_jax.available(), gpu_jax.MISSING),
        ("CUDA C++ by hand", gpu_by_hand.measure, gpu_by_hand.available(), gpu_by_hand.MISSING),
    ]
    for name, measure_other, available, missing in others:
        if not available:
            rows.append((name, "–", "–", "–", missing))
            continue
        some_of_it = _within_patience(name, some, measure_other)
        share = sum(group.steps * len(group.methods) for group in some_of_it) / steps
        found = measure_other(some_of_it, rounds=3 if share == 1.0 else 1)
        taken = median(found.transfers)
        apart, cells = largest_difference(found.errors, {key: expected[key] for key in found.errors})
        label = f"{name} (compiled in {found.preparing:.0f} s)"
        if share < 1.0:
            label += f", {100 * share:.0f} % of it"
            mine_too = median(_on_device(device, {key: tasks[key] for key in found.errors}, some_of_it).transfers)
        else:
            mine_too = mine
        difference = f"within {apart:.0e}" + (f", {cells} infinite elsewhere" if cells else ", the same infinite")
        rows.append((label, Seconds(taken), _rate(share * steps, taken), _times(taken, mine_too), difference))
    return rows, mine


def _within_patience(name: str, some: Sequence[Group], measure_other: Callable[..., Measured]) -> Sequence[Group]:
    """All groups, or those that JAX can do in a tolerable time, tried on the shortest runs."""
    if name != "JAX":
        return some
    small = [group for group in some if group.rewards.shape[2] <= 100]
    taken = median(measure_other(small, rounds=1).transfers)
    steps = sum(group.steps * len(group.methods) for group in some)
    tried = sum(group.steps * len(group.methods) for group in small)
    return some if 8.0 * taken * steps / tried < PATIENCE else [g for g in some if not g.tabular or g in small]


def _tasks(group: Group, method: str) -> list[Task]:
    return [task for case in group.cases for task in case.tasks() if task.method == method]


def _on_processor(tasks: dict[tuple[str, str, str], list[Task]], some: Sequence[Group]) -> tuple[Errors, float]:
    """The errors, and the seconds that it took with compiled kernels."""
    flat = [task for each in tasks.values() for task in each]
    for each in tasks.values():
        replace(each[0], runs=each[0].runs[:1]).compute()  # compiled
    begin = perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(flat, pool.map(lambda task: task.compute()["error"].to_numpy(), flat), strict=True))
    seconds = perf_counter() - begin
    return _stacked({task.name: found[task] for task in flat}, tasks, some), seconds


def _on_device(
    device: Any, tasks: dict[tuple[str, str, str], list[Task]], some: Sequence[Group], rounds: int = 5
) -> Measured:
    from trueonline.study.engines.cuda import batches

    flat = [task for each in tasks.values() for task in each]
    made = [batches.gather(few) for few in batches.plan(flat, device.most_bytes, device.most_steps)]
    found: dict[str, np.ndarray] = {}
    times = []
    for _ in range(rounds + 1):  # the first loads kernels
        begin = perf_counter()
        errors = _through(device, made)
        times.append(perf_counter() - begin)
        for batch, of_launches in zip(made, errors, strict=True):
            for launch, each in zip(batch.launches, of_launches, strict=True):
                found |= {task.name: values.ravel() for task, values in batches.split(launch, each)}
    return Measured(_stacked(found, tasks, some), times[0], [], times[1:])


def _through(device: Any, made: Sequence[Any]) -> list[list[np.ndarray]]:
    """All batches, two under way at a time."""
    waiting, errors = [], []
    for batch in made:
        if len(waiting) == 2:
            errors.append(device.collect(waiting.pop(0)))
        waiting.append(device.submit(batch))
    return errors + [device.collect(ticket) for ticket in waiting]


def _stacked(
    found: dict[str, np.ndarray], tasks: dict[tuple[str, str, str], list[Task]], some: Sequence[Group]
) -> Errors:
    shapes = {(*group.name, method): group.rewards.shape[:2] for group in some for method in group.methods}
    return {
        name: np.concatenate([found[task.name] for task in each]).reshape(*shapes[name], len(each[0].case.step_sizes), -1)
        for name, each in tasks.items()
    }


def _limits(device: Any, some: Sequence[Group]) -> Table:
    """The speed and the resources of each kernel of ours, and the resource that limits it."""
    from trueonline.study.engines.cuda import batches

    rows = []
    for group in some:
        for method in group.methods:
            (made, *_) = [
                batches.gather(few) for few in batches.plan(_tasks(group, method), device.most_bytes, device.most_steps)
            ]
            (launch,) = made.launches
            times = []
            for _ in range(3):
                begin = perf_counter()
                device.collect(device.submit(made))
                times.append(perf_counter() - begin)
            kernel = device.describe(made, launch)
            steps = len(launch.rows) * made.cells * made.rewards.shape[1]
            registers = -(-kernel.registers // 8) * 8  # they are given out by eight
            fit = REGISTERS // (registers * kernel.block) * kernel.block
            place = "shared memory" if device.threads(kernel) < fit else "registers"
            rows.append(
                (
                    f"{group.name[0]} {group.name[1]}, {method}",
                    _rate(steps, min(times)),
                    kernel.registers,
                    f"{kernel.shared / kernel.block:.0f} B",
                    f"{device.threads(kernel)} ({100 * device.threads(kernel) / 2048:.0f} %)",
                    place,
                )
            )
    names = ("kernel", "G steps/s", "registers", "shared memory of a thread", "threads on a multiprocessor", "limited by")
    return Table(names, rows)


def _commands(quick: bool) -> list[tuple[str, float, float]]:
    """Whole commands in processes of their own: seconds, and seconds of the sweep."""
    runs = ["--runs", "2"] if quick else []
    few = ["--mrps", "3"] if quick else []
    with tempfile.TemporaryDirectory() as folder:
        empty = {"NUMBA_CACHE_DIR": f"{folder}/cache", "XDG_CACHE_HOME": f"{folder}/cache"}
        os.mkdir(f"{folder}/cache", 0o700)
        return [
            ("trueonline reproduce fig4 --engine cuda, the first time", *_command(["fig4", *runs], folder, "a", empty)),
            ("trueonline reproduce fig4 --engine cuda", *_command(["fig4", *runs], folder, "b", empty)),
            ("trueonline reproduce many-mrps --engine cuda", *_command(["many-mrps", *few, *runs], folder, "c", empty)),
        ]


def _command(arguments: list[str], folder: str, name: str, variables: dict[str, str]) -> tuple[float, float]:
    command = [
        sys.executable,
        "-m",
        "trueonline",
        "reproduce",
        *arguments,
        "--engine",
        "cuda",
        "--out",
        f"{folder}/{name}",
    ]
    begin = perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables}, check=False)
    seconds = perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    before, found, _ = done.stdout.partition(" s for the sweep")
    return seconds, float(before.rpartition(" ")[2]) if found else 0.0


def _rate(steps: float, seconds: float) -> str:
    return short(steps / seconds / 1e9)


def _times(seconds: float, ours: float) -> str:
    return f"{short(seconds / ours)}×"
