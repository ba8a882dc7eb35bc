"""The study of Figure 4: half a billion learning steps with the error measured after each, against plain NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from time import perf_counter

import numpy as np

from benchmarks.report import Bytes, Ratio, Seconds, Section, Settings, Table, Target
from trueonline.lab.experiment import Settings as PaperSettings
from trueonline.lab.experiments import random_mrps
from trueonline.study import Case

RUN = """
import re, sys
from pathlib import Path
from time import perf_counter
from trueonline import study
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiment import Settings
folder, runs, threads = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
cases = random_mrps.cases(0, Settings(folder), runs, random_mrps.PAPERS)
begin = perf_counter()
study.execute(cases, folder, threads=threads)
seconds = perf_counter() - begin
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())  # ru_maxrss would count the parent's
print(seconds, int(peak[1]) * 1024)
"""

# The time of a study of many MRPs beside its kernels: problems, trajectories, names, tables, files, and reading them again.
SHARE = """
import sys
from pathlib import Path
from time import process_time, thread_time
from trueonline.lab.experiments import many_mrps
from trueonline.lab.experiment import Settings
from trueonline.study import SweptMethod
sweep, spent = SweptMethod.sweep, []
def timed(*arguments):
    begin = thread_time()
    sweep(*arguments)
    spent.append(thread_time() - begin)
SweptMethod.sweep = timed
folder, mrps = Path(sys.argv[1]), int(sys.argv[2])
many_mrps.run(Settings(folder / "first", options={"mrps": 2}, runs=2))  # modules and kernels are loaded
spent.clear()
begin = process_time()
many_mrps.run(Settings(folder / "second", options={"mrps": mrps}))
whole = process_time() - begin
print((whole - sum(spent)) / whole)
"""

# How much of the time of all cores a sweep of agents uses. Its processes are done when it is.
BUSY = """
import resource, sys
from time import perf_counter
from trueonline import control
def used():
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)
cores, steps = int(sys.argv[1]), int(sys.argv[2])
begin, before = perf_counter(), used()
agents, grid = ["true_online_sarsa", "watkins_q"], ([0.1, 0.5], [0.0, 0.9])
control.sweep("CartPole-v1", agents, *grid, seeds=5 * cores, steps=steps, threads=cores)
print((used() - before) / (perf_counter() - begin) / cores)
"""


def measure(settings: Settings) -> Section:
    runs = 2 if settings.quick else random_mrps.RUNS
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        cases = random_mrps.cases(0, PaperSettings(folder), runs, random_mrps.PAPERS)
    steps = sum(task.steps for case in cases for task in case.tasks())
    _study(1, cores)  # warms the cache of kernels
    seconds, peak = _study(runs, cores)
    alone, _ = _study(runs, 1)
    ratios, plain, plain_total = [], [], 0.0
    for case in cases:
        for method in case.methods:
            ours, theirs = _per_step_alone(case, method), _numpy_per_step(case, method)
            ratios.append(theirs / ours)
            plain.append(theirs)
            plain_total += theirs * sum(task.steps for task in case.tasks() if task.method == method)
    ratio = Ratio(float(np.median(ratios)), min(ratios), max(ratios))
    fresh = _fresh(runs, cores) if not settings.quick else None
    beside = _share(2 if settings.quick else 10)
    busy = _busy(cores, 200 if settings.quick else 20_000)
    rows = [
        ("learning steps, each with its error", f"{steps:,}"),
        (f"{cores} threads, warm cache", Seconds(seconds)),
        ("1 thread, warm cache", Seconds(alone)),
        ("1 thread over all threads", f"{alone / seconds:.2f}×"),
        (f"{cores} threads, kernels compiled on the way", "–" if fresh is None else Seconds(fresh)),
        ("per step and thread", Seconds(seconds * cores / steps)),
        ("NumPy, per step (median of all cases)", Seconds(float(np.median(plain)))),
        ("NumPy against the kernel, one thread each", ratio),
        ("NumPy for all of it, from the sample", Seconds(plain_total)),
        (f"that against {cores} threads", f"{plain_total / seconds:.0f}×"),
        ("largest resident memory", Bytes(int(peak))),
        ("many-mrps: processor time that is not the sweep's", f"{100.0 * beside:.1f} %"),
        (f"`control.sweep`: how busy {cores} cores are", f"{100.0 * busy:.1f} %"),
    ]
    return Section(
        "The study of Figure 4",
        f"Three MRPs, three representations, 30 step-sizes, 20 trace decays, {runs} runs, in a process of its own. NumPy does the "
        "same work in the plain way on a few thousand steps of every case.",
        [Table(("what", "measured"), rows)],
        targets=[
            Target("the study of Figure 4, warm", "≤ 9 s", str(Seconds(seconds)), seconds <= 9.0),
            Target("the same, kernels compiled on the way", "≤ 90 s", rows[4][1], fresh is not None and fresh <= 90.0),
            Target("many-mrps beside its kernels", "≤ 10 %", f"{100.0 * beside:.1f} %", beside <= 0.1),
            Target("cores that train agents are busy", "> 90 %", f"{100.0 * busy:.1f} %", busy > 0.9),
            Target("its memory", "< 1,024 MiB", str(Bytes(int(peak))), peak < 2**30),
            Target(
                f"NumPy on one core against the study on {cores}",
                "> 500×",
                f"{plain_total / seconds:.0f}×",
                plain_total / seconds > 500.0,
            ),
        ],
    )


def _study(runs: int, threads: int, **environment: str) -> tuple[float, float]:
    """Seconds and peak memory of the study in a fresh process and folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", RUN, folder, str(runs), str(threads)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    seconds, peak = printed.stdout.split()
    return float(seconds), float(peak)


def _fresh(runs: int, threads: int) -> float:
    with tempfile.TemporaryDirectory() as cache:
        return _study(runs, threads, NUMBA_CACHE_DIR=cache)[0]


def _share(mrps: int) -> float:
    """The share of the processor time of many-mrps that is not the sweep's."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", SHARE, folder, str(mrps)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _busy(cores: int, steps: int) -> float:
    """The share of the time of all cores that a sweep of agents uses."""
    command = [sys.executable, "-c", BUSY, str(cores), str(steps)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _per_step_alone(case: Case, method: str) -> float:
    task = Case(case.problem, {method: None}, case.step_sizes, case.trace_decays, 1, case.steps).tasks()[0]
    task.compute()
    begin = perf_counter()
    task.compute()
    return (perf_counter() - begin) / task.steps


def _numpy_per_step(case: Case, method: str) -> float:
    """The plain way: a loop over the steps, vectors for weights, trace and features, the error by a matrix product."""
    states, rewards, _ = case.problem.trajectory(case.steps, [0, 0])
    phi, A, target, gamma = case.problem.features, case.problem.metric, case.problem.lms_weights, case.problem.discount
    alpha, lam, total = 0.01, 0.9, 0.0
    w, e, v_old = np.zeros(len(target)), np.zeros(len(target)), 0.0
    begin = perf_counter()
    for _ in range(2000 // case.steps + 1):
        for t in range(case.steps):
            x, x_next = phi[states[t]], phi[states[t + 1]]
            v, v_next = w @ x, w @ x_next
            delta = rewards[t] + gamma * v_next - v
            if method == "true_online":
                e = gamma * lam * e + x - alpha * gamma * lam * (e @ x) * x
                w = w + alpha * (delta + v - v_old) * e - alpha * (v - v_old) * x
                v_old = v_next
            else:
                e = gamma * lam * e + x if method == "accumulate" else np.where(x == 1.0, 1.0, gamma * lam * e)
                w = w + alpha * delta * e
            total += (w - target) @ A @ (w - target)
    return (perf_counter() - begin) / ((2000 // case.steps + 1) * case.steps)
