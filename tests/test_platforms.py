"""Systems that differ from the one on which the tests run.

Windows is simulated: `tests/without_posix.py` takes away what it lacks. Each work below is done there and here, with one result.
"""

import ast
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress
from pathlib import Path

import click
import numpy as np
import pyarrow.parquet as pq
import pytest

import trueonline as to
from tests.streams.live.helpers import get, small_hub
from tests.study.toy_work import Counting
from trueonline import files, platforms, study
from trueonline.cli import main
from trueonline.cli.errors import plain_errors
from trueonline.streams.live import Server
from trueonline.streams.sources import Pipe, SourceAddress, columns_of, open_source
from trueonline.streams.sources.addresses import local_path, shown_address

ROOT = Path(__file__).parents[1]
PACKAGE = Path(to.__file__).parent
LINUX = os.path.exists("/proc/self/fd")  # where open files are listed: the simulation needs that
SOURCES = sorted(PACKAGE.rglob("*.py"))
ROWS = "".join(f"{t / 10},{t % 7}\n" for t in range(300))  # of standard input
PREDICT = ["--time", "time", "--target", "Δx", "--horizon", "1s", "--method", "true_online", "--features", "5000"]


RESULT = "The result is "  # stands before a result of tests/without_posix.py


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """What each work prints where Windows is simulated, and its result. One process does them all."""
    folder = tmp_path_factory.mktemp("there")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT)])}
    environment |= {"PYTHONIOENCODING": "cp1252", "PYTHONWARNDEFAULTENCODING": "1"}
    environment["HOME"] = os.environ["NUMBA_CACHE_DIR"]  # Windows takes compiled kernels from the home alone
    names = [work.__name__ for work in (*WORKS, printing, piping)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.without_posix", str(folder), *names],
        env=environment, cwd=folder, input=f"time,Δx\n{ROWS}".encode(), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    parts = re.split(rf"\n{RESULT}(.*)\n", done.stdout.decode("utf-8"))
    return dict(zip(names, zip(parts[::2], map(json.loads, parts[1::2]), strict=False), strict=True))


def here(work, folder):
    folder.mkdir()
    return work(folder)


# --- Works ----------------------------------------------------------------------------------------


def learning(folder):
    """Learn step by step and in one call, save, load, learn on, and verify."""
    learner = to.TrueOnlineTD(n_features=5, step_size=0.1, trace_decay=0.8, discount=0.9)
    learner.start(2)
    for state in (3, 4, None):
        learner.update(1.0, state)
    learner.save(folder / "learner.npz")
    learner.save(folder / "learner.npz")  # over the first
    loaded = to.load(folder / "learner.npz")
    for each in (learner, loaded):
        each.run(np.eye(5)[np.arange(40) % 5], np.arange(39.0))
    report = to.verify(to.TrueOnlineTD, trials=1, steps=10)
    lock = files.Lock(folder / "learner.npz")
    with pytest.raises(ValueError, match="another run"):
        files.Lock(folder / "learner.npz")
    lock.release()
    files.Lock(folder / "learner.npz").release()
    assert learner.weights.tobytes() == loaded.weights.tobytes()
    return [report.exact, learner.weights.tolist()]


def predicting(folder):
    """Predict a recording in two runs with a checkpoint between them, in all formats. The file is that of one run."""
    log = folder / "log.csv"
    rows = [f"{t / 10},{np.sin(t / 7)}\n" for t in range(600)]
    log.write_text("time,Δx\n" + "".join(rows), encoding="utf-8")
    for ending in ("csv", "jsonl", "parquet"):
        whole, resumed = folder / f"whole.{ending}", folder / f"resumed.{ending}"
        run("predict", log.as_uri(), *PREDICT, "--out", whole)
        for limit in (["--samples", "250"], [], ["--fresh"]):
            run("predict", log, *PREDICT, "--out", resumed, "--checkpoint", folder / f"kept.{ending}", *limit)
            assert limit == ["--samples", "250"] or same(whole, resumed), (ending, limit)
    run("predict", log, *PREDICT, "--out", folder / "told.csv", "--alerts", folder / "alerts.jsonl", "--alert", "0.9")
    return (folder / "whole.csv").read_text("utf-8")


def sweeping(folder):
    """Sweep in threads, and count in processes. One of them has a result already."""
    (folder / "my.toml").write_text(
        '\ufeffmethods = ["true_online", "replace"]\nruns = 2\nsteps = 30\nstep_sizes = [0.1, 0.3]\ntrace_decays = [0.9]\n'
        '[[problems]]\nkind = "random_walk"\n',
        encoding="utf-8",
    )
    run("sweep", folder / "my.toml", "--out", folder / "swept")
    run("sweep", folder / "my.toml", "--out", folder / "swept")
    deaths = (15,) if hasattr(signal, "SIGKILL") else ()
    works = [Counting("a", 40, str(folder)), Counting("b", 40, str(folder), deaths=deaths)]
    study.execute_tasks(works[:1], folder / "counted")
    study.execute_tasks(works, folder / "counted", threads=2)
    counted = study.gather_tasks(works, folder / "counted")
    assert [len(work.lives()) for work in works] == [1, 1 + len(deaths)]
    return [pq.read_table(folder / "swept" / "results.parquet").to_pylist(), counted.to_pylist()]


def training(folder):
    """Train an agent in two runs, longer the second time, with a picture of the curve."""
    for episodes in ("2", "3"):
        run("train", "FrozenLake-v1", "--episodes", episodes, "--evaluate", "1", "--no-film", "--out", folder / "trained")
    assert (folder / "trained" / "curve.png").stat().st_size
    return (folder / "trained" / "episodes.csv").read_text("utf-8")


def serving(folder):
    """Serve the live page."""
    with Server(small_hub()) as served:
        with pytest.raises(ValueError, match="give another port"):
            Server(small_hub(), port=served.port)
        return [get(served, path)[0] for path in ("/", "/app.js", "/nothing")]


def piping(folder):
    """Predict standard input, to standard output."""
    run("predict", "-", *PREDICT, "--out", "-")


def printing(folder):
    """Print a table."""
    run("verify", "true_online", "--steps", "5", "--trials", "1")


WORKS = (learning, serving, predicting, sweeping, training)


def run(*arguments):
    main([str(argument) for argument in arguments], standalone_mode=False)


def same(one, another):
    if one.suffix == ".parquet":
        return pq.read_table(one).equals(pq.read_table(another))
    return one.read_bytes() == another.read_bytes()


# --- Here and there -------------------------------------------------------------------------------


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_the_result_is_the_same_without_what_windows_lacks(work, tmp_path, monkeypatch, capfd, request):
    monkeypatch.syspath_prepend(ROOT)  # for processes
    expected = here(work, tmp_path / "here")
    if LINUX:
        assert request.getfixturevalue("there")[work.__name__][1] == json.loads(json.dumps(expected))


@pytest.mark.skipif(not LINUX, reason="the simulation needs /proc")
def test_standard_input_is_read_without_poll(there):
    printed = there["piping"][0]
    head, *lines = printed.splitlines()
    assert head.startswith("time,Δx")
    assert [float(line.partition(",")[0]) for line in lines if "," in line] == [t / 10 for t in range(300)]
    assert "\r" not in printed


@pytest.mark.skipif(not LINUX, reason="the simulation needs /proc")
def test_tables_are_printed_whatever_the_encoding(there):
    assert "──" in there["printing"][0]


# --- What the sources may say ---------------------------------------------------------------------


def test_one_module_knows_about_systems():
    """Elsewhere nobody asks for the name of a system, nor uses what one of them lacks."""
    said = re.compile(
        r"\b(sys\.platform|os\.name|fcntl|getuid|geteuid|fchmod|os\.pread|os\.fork|O_DIRECTORY|O_NOFOLLOW"
        r"|pthread_sigmask|SIGKILL|SIGHUP|select\.poll|resource_tracker|os\.replace|\.rename\()"
    )
    guilty = {
        path.relative_to(PACKAGE).as_posix(): found
        for path in SOURCES
        if path.name != "platforms.py" and (found := said.findall(path.read_text("utf-8")))
    }
    assert not guilty


def test_texts_have_a_named_encoding():
    """Otherwise Windows takes cp1252, or what else the user's language has."""
    guilty = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for path in SOURCES
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and _takes_any_encoding(call)
    ]
    assert not guilty


def _takes_any_encoding(call):
    """Whether a call reads or writes text, and names no encoding."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if "encoding" in named or None in named:
        return False
    if name in ("read_text", "write_text"):
        return len(call.args) < (1 if name == "read_text" else 2)
    if name == "open" and isinstance(call.func, ast.Name):
        mode = call.args[1] if len(call.args) > 1 else named.get("mode", ast.Constant("r"))
        return not (isinstance(mode, ast.Constant) and "b" in mode.value)
    return any(isinstance(named.get(word), ast.Constant) and named[word].value for word in ("text", "universal_newlines"))


def test_the_check_of_encodings_sees_what_it_should():
    texts = ("open(p)", 'open(p, "w")', "p.read_text()", "p.write_text(t)", "run(c, text=True)")
    fine = ('open(p, "rb")', 'open(p, encoding="utf-8")', 'p.read_text("utf-8")', 'run(c, text=True, encoding="utf-8")')
    found = {text: _takes_any_encoding(ast.parse(text).body[0].value) for text in (*texts, *fine)}
    assert [text for text, guilty in found.items() if guilty] == list(texts)


# --- Paths and addresses --------------------------------------------------------------------------


@pytest.mark.parametrize("path", [r"C:\logs\arm@home.csv", "C:/logs/arm@home.csv", "c://logs/arm@home.csv"])
def test_a_drive_is_not_a_scheme(path):
    with pytest.raises(ValueError, match="there is no file") as error:
        open_source(path, ["x"], time="time")
    assert "addresses begin with" not in str(error.value)
    assert shown_address(path) == path
    assert SourceAddress.of(path.replace("arm", "*")).several


def test_a_file_has_an_address(tmp_path):
    log = tmp_path / "my log.csv"
    log.write_text("time,x\n0,1\n1,2\n", encoding="utf-8")
    for address in (
        log.as_uri(),
        log.as_uri().replace("file:///", "FILE://localhost/"),
        log.as_uri().replace("///", "/"),
    ):
        assert local_path(address) == str(log)
        assert columns_of(address, time="time") == ("x",)
        with open_source(address, ["x"], time="time", pace=100.0) as source:
            assert next(source).values.tolist()[0] == [1.0]
    with pytest.raises(ValueError, match="is on another machine"):
        open_source("file://server/log.csv", ["x"])


# --- Stand-ins ------------------------------------------------------------------------------------


@pytest.fixture
def no_owners(monkeypatch):
    monkeypatch.setattr(platforms, "HAS_OWNERS", False)
    monkeypatch.setattr(platforms, "PAUSES", (0.0, 0.0))


def test_a_file_that_somebody_reads_is_renamed_over_a_moment_later(no_owners, tmp_path, monkeypatch):
    real, refusals = os.replace, [PermissionError, PermissionError]

    def replace(source, target):
        if refusals:
            raise refusals.pop()
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    files.write_whole(tmp_path / "file", lambda file: file.write(b"words"))
    assert (tmp_path / "file").read_bytes() == b"words"
    refusals += 3 * [PermissionError(13, "Permission denied")]
    with pytest.raises(PermissionError):
        files.write_whole(tmp_path / "file", lambda file: file.write(b"others"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"words"


def test_without_owners_the_home_is_trusted_alone(no_owners, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for folder, fits in ((tmp_path / "home" / ".cache", True), (tmp_path / "shared", False), (tmp_path / "homes", False)):
        with nullcontext() if fits else pytest.raises(PermissionError, match="outside the user's home"):
            platforms.write_own(folder / "trueonline", "code", b"words")
            assert platforms.read_own(folder / "trueonline", "code") == b"words"
    (tmp_path / "home" / "link").symlink_to(tmp_path / "shared")
    for folder in (tmp_path / "home" / "link", tmp_path / "home" / "link" / "inner"):
        with pytest.raises(PermissionError, match="outside the user's home"):
            platforms.make_own(folder)


@pytest.mark.parametrize("kind", [platforms.Polled, platforms.Fetched] if hasattr(os, "mkfifo") else [platforms.Fetched])
def test_bytes_are_read_as_they_arrive(kind):
    out, into = os.pipe()
    closed = threading.Event()
    arriving = kind(out, lambda: (os.close(out), closed.set()))
    assert arriving.read(100, 0.0) is None
    for piece in (b"one", b"two"):
        os.write(into, piece)
        assert arriving.read(100, 60.0) == piece
    os.write(into, b"x" * 150)
    assert arriving.read(100, 60.0) + arriving.read(100, 60.0) == b"x" * 150
    os.close(into)
    assert arriving.read(100, 60.0) == b""
    arriving.close()
    assert closed.wait(60.0)


@pytest.mark.parametrize("ahead", [0, 1, 5])
def test_a_thread_that_waits_for_a_pipe_closes_it(ahead):
    out, into = os.pipe()
    closed = threading.Event()
    arriving = platforms.Fetched(out, lambda: (os.close(out), closed.set()))
    assert arriving.read(1, 0.0) is None
    os.write(into, b"x" * ahead)  # more than is read ahead
    arriving.close()
    with suppress(BrokenPipeError):  # a thread that had bytes to read may have closed the pipe by now
        os.write(into, b"last words")
    assert closed.wait(60.0)
    os.close(into)


def test_a_pipe_that_was_never_read_is_closed_at_once():
    out, into = os.pipe()
    os.close(into)
    platforms.Fetched(out, lambda: os.close(out)).close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(out)


def test_an_error_of_a_pipe_is_told(tmp_path):
    arriving = platforms.Fetched(10**6, lambda: None)
    with pytest.raises(OSError, match="Bad file descriptor"):
        arriving.read(1, 60.0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes in folders")
def test_a_named_pipe_is_read_without_poll(tmp_path, monkeypatch):
    monkeypatch.setattr(platforms, "incoming", platforms.Fetched)
    monkeypatch.setattr("trueonline.streams.sources.pipes.incoming", platforms.Fetched)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b"time,x\n0,1\n1,2\n"))
    writer.start()
    with Pipe(tmp_path / "pipe", ["x"], time="time") as source:
        assert [row for block in source for row in block.values.tolist()] == [[1.0], [2.0]]
    writer.join()


@pytest.mark.parametrize("masks", [True, False])
def test_ctrl_c_waits_for_the_end_of_the_block(masks, monkeypatch):
    if not masks:
        monkeypatch.delattr(signal, "pthread_sigmask", raising=False)
    steps = []

    def pressed():
        with platforms.ctrl_c_postponed():
            signal.raise_signal(signal.SIGINT)
            steps.append("after the signal")
        steps.append("after the block")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            pressed()
        with platforms.ctrl_c_postponed():
            steps.append("without a signal")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["after the signal", "without a signal"]


def test_other_threads_need_not_wait_for_ctrl_c(monkeypatch):
    monkeypatch.delattr(signal, "pthread_sigmask", raising=False)
    steps = []

    def start():
        with platforms.ctrl_c_postponed():
            steps.append("started")

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert steps == ["started"]


def test_a_pipe_that_nobody_reads_is_no_error_on_windows(no_owners, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    for error in (BrokenPipeError(), OSError(errno.EINVAL, "Invalid argument")):
        with os.fdopen(os.dup(writer), "w", encoding="utf-8") as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            with pytest.raises(SystemExit) as end, plain_errors():
                raise error
            assert end.value.code == 0
            print("nobody reads this, and nothing fails", file=stream)
    with pytest.raises(click.ClickException, match="Invalid argument"), plain_errors():
        raise OSError(errno.EINVAL, "Invalid argument", "a:b")
    monkeypatch.setattr(platforms, "HAS_OWNERS", True)
    with pytest.raises(click.ClickException, match="Invalid argument"), plain_errors():
        raise OSError(errno.EINVAL, "Invalid argument")
    os.close(writer)


class Screen(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("kind", "encoding", "expected"),
    [
        (Screen, "cp1252", b"TD(?) \x96\r\n"),
        (Screen, "utf-8", "TD(λ) –\r\n".encode()),
        (io.TextIOWrapper, "cp1252", "TD(λ) –\n".encode()),
        (io.TextIOWrapper, "utf-8", "TD(λ) –\r\n".encode()),
    ],
)
def test_any_character_can_be_printed(kind, encoding, expected, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", kind(written, encoding=encoding, newline="\r\n"))
    platforms.print_any_character()
    print("TD(λ) –")
    sys.stdout.flush()
    assert written.getvalue() == expected
