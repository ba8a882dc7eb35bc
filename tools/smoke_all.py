"""The package with all extras: one small use of each part. `tools.dist` runs this from a clean environment."""

import json
import math
import re
import signal
import subprocess
import urllib.request
from pathlib import Path
from urllib.parse import urljoin

import numpy as np
from smoke import COMMAND, run_all, trueonline_command

import trueonline as to

VIEW = """
def target(k, h, R, V, gamma, lam):
    if k + 1 == h:
        return R[h] + gamma[h] * V(k, h)
    rest = target(k + 1, h, R, V, gamma, lam)
    return R[k + 1] + gamma[k + 1] * ((1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * rest)
"""


def sweeps() -> None:
    """a sweep runs, from Python and from a file with a picture"""
    problem = to.problems.random_walk()
    table = to.sweep(
        problem, methods=("true_online",), step_sizes=(0.1, 0.2), trace_decays=(0.9,), runs=2, steps=20, seed=0
    )
    assert len(table) > 0
    Path("sweep.toml").write_text('runs = 2\nsteps = 20\n[[problems]]\nkind = "random_walk"\n', encoding="utf-8")
    trueonline_command("sweep", "sweep.toml", "--out", "swept", "--figure", "sweep.png")
    assert Path("sweep.png").read_bytes().startswith(b"\x89PNG")


def predicts() -> None:
    """predict reads a CSV file and writes predictions as CSV and as Parquet"""
    rows = "".join(f"{t},{math.sin(t / 5):.6f}\n" for t in range(200))
    Path("log.csv").write_text(f"time,a\n{rows}", encoding="utf-8")
    for out in ("out.csv", "out.parquet"):
        told = trueonline_command(
            "predict", "log.csv", "--time", "time", "--target", "a", "--horizon", "5s", "--out", out, "--json"
        )
        assert json.loads(told)["samples"] == 200, told
    assert len(Path("out.csv").read_text("utf-8").splitlines()) == 201


def reproduces() -> None:
    """reproduce leaves figure, data, verdicts and a report"""
    trueonline_command("reproduce", "fig1", "--runs", "2", "--out", "reproduced")
    for name in ("fig1/figure.png", "fig1/data.csv", "verdicts.json", "report.html"):
        assert Path("reproduced", name).stat().st_size > 0, name


def derives() -> None:
    """derive finds the backward view of the λ-return, and it is exact"""
    Path("view.py").write_text(VIEW, encoding="utf-8")
    trueonline_command("derive", "view.py", "--trials", "1")


def trains() -> None:
    """train leaves an agent of CartPole that loads"""
    trueonline_command("train", "CartPole-v1", "--episodes", "3", "--out", "trained")
    assert np.isfinite(to.load("trained/agent.npz").weights).all()


def plays() -> None:
    """an Atari game runs"""
    trueonline_command("atari", "breakout", "--frames", "500")


def shows() -> None:
    """the live page answers on the loopback address, with its scripts, and stops"""
    line = [COMMAND, "live", "arm", "--target", "force", "--horizon", "0.5s", "--port", "0"]
    # Ctrl-C, which on Windows goes to a group of processes.
    stop = getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT)
    group = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    with subprocess.Popen(
        line, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, creationflags=group
    ) as server:
        try:
            told = ""
            for told in server.stderr:
                if "http://" in told:
                    break
            (url,) = re.findall(r"http://127\.0\.0\.1:\d+\S*", told)
            page = fetch(url)
            for name in re.findall(r'(?:src|href)="([^":]+)"', page):
                assert fetch(urljoin(url, name)), name
        finally:
            server.send_signal(stop)
            server.stderr.read()
    assert server.returncode == 0, server.returncode


def fetch(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode("utf-8")


run_all([sweeps, predicts, reproduces, derives, trains, plays, shows])
