"""The package without extras: what it can do, and how it refuses the rest. `tools.dist` runs this from a clean environment."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

from smoke import run_all, trueonline_command

import trueonline as to


def alone() -> None:
    """no package of an extra is installed"""
    for name in ("scipy", "pyarrow", "matplotlib", "sympy", "gymnasium", "starlette", "distributed"):
        assert find_spec(name) is None, name


def learns() -> None:
    """a learner learns, and resumes from a file bit for bit"""
    learner = to.TrueOnlineTD(n_features=3, step_size=0.5, trace_decay=0.9, discount=1.0)
    learner.run([0, 1, 2], rewards=[0.0, 1.0])
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder, "learner.npz"))
        again = to.load(Path(folder, "learner.npz"))
    assert learner.update(2.0, 0) == again.update(2.0, 0)
    assert (learner.weights == again.weights).all()
    assert learner.weights[0] != 0.0


def verifies() -> None:
    """true online TD(λ) equals its definition, and accumulate TD(λ) does not"""
    assert to.verify(to.TrueOnlineTD, trials=1).exact
    assert not to.verify(to.AccumulateTD, definition=to.OnlineLambdaReturn, trials=1).exact


def commands() -> None:
    """trueonline --help, --version and verify work"""
    assert "Sweep methods" in trueonline_command("--help")
    assert to.__version__ in trueonline_command("--version")
    assert "true_online_watkins_q" in trueonline_command("verify", "--trials", "1")


def predicts() -> None:
    """trueonline predict learns from a simulated arm"""
    assert "force" in trueonline_command("predict", "arm", "--target", "force", "--samples", "200")


def refuses() -> None:
    """commands that need an extra name it in one line"""
    Path("log.csv").write_text("a\n1\n2\n", encoding="utf-8")
    Path("sweep.toml").write_text('[[problems]]\nkind = "random_walk"\n', encoding="utf-8")
    cases = {
        "sweep sweep.toml": "study",
        "reproduce fig1": "report",
        "train CartPole-v1": "gym",
        "asterix --frames 100": "atari",
        "derive view.py": "derive",
        "predict log.csv --rate 1 --target a": "streams",
        "predict mqtt://127.0.0.1/a --rate 1 --target a": "mqtt",
        "predict lsl://a --rate 1 --target a": "lsl",
        "live log.csv --rate 1 --target a": "live",
    }
    for command, extra in cases.items():
        printed = trueonline_command(*command.split(), status=1)
        assert f"pip install 'trueonline[{extra}]'" in printed, (command, printed)
        assert len(printed.splitlines()) == 1, printed
    told = ""
    try:
        _ = to.sweep
    except ImportError as error:
        told = str(error)
    assert "pip install 'trueonline[study]'" in told


run_all([alone, learns, verifies, commands, predicts, refuses])
