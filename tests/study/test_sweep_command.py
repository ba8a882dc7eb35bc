"""The command `trueonline sweep`, and the examples that go with it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import trueonline as to
from trueonline import catalog, study
from trueonline.cli import main
from trueonline.study import sweep_figure, sweep_file

EXAMPLES = Path(__file__).parents[2] / "examples"
BIN = Path(sys.executable).parent

SPEC = """
step_sizes = [0.1, 0.4]
trace_decays = [0.0, 0.9]
runs = 3
steps = 20
seed = 1
[[problems]]
kind = "random_mrp"
k = 10
b = 3
sigma = 0.1
representations = ["tabular", "non_binary"]
[[problems]]
kind = "random_walk"
label = "walk"
"""
TASKS, ROWS = 3 + 2 + 3, (3 + 2 + 3) * 2 * 2 * 3


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


def sweep(*arguments):
    return CliRunner().invoke(main, ["sweep", *map(str, arguments)])


def test_help_shows_every_option_and_a_spec_that_runs(tmp_path):
    result = sweep("--help")
    assert result.exit_code == 0
    for name in catalog.names(swept=True):
        assert name in result.stdout
    for option in ("--out", "--figure", "--engine", "--shard I/N", "--threads"):
        assert option in result.stdout
    _, _, example = result.stdout.partition("may be left out):\n")
    spec, *_ = example.partition("Options:")[0].partition("Or agents in")
    (tmp_path / "spec.toml").write_text(spec)
    assert len(sweep_file.read(tmp_path / "spec.toml")) == 2


def test_the_command_writes_the_results_and_prints_the_best(spec, tmp_path):
    result = sweep(spec, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    expected = study.run(sweep_file.read(spec))
    found = pq.read_table(tmp_path / "out" / "results.parquet")
    assert found.equals(expected)
    assert found.column_names == ["problem", "representation", "method", "step_size", "trace_decay", "run", "error"]
    assert found.num_rows == ROWS
    assert pyarrow.csv.read_csv(tmp_path / "out" / "results.csv").to_pylist() == expected.to_pylist()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["results.csv", "results.parquet", "tasks"]
    assert len(list((tmp_path / "out" / "tasks").glob("*.parquet"))) == TASKS
    lines = result.stdout.splitlines()
    assert lines[-1] == f"All {ROWS} results are in {tmp_path}/out/results.parquet and {tmp_path}/out/results.csv."
    assert lines[-3].startswith(
        "± is half of a 95 % interval over 3 runs. The best of 4 settings was chosen by these runs"
    )
    assert lines[-2] == "--confirm 50 judges it by fresh runs."


def test_the_printed_table_has_the_least_mean_error_of_every_method_on_every_problem(spec, tmp_path):
    lines = sweep(spec, "--out", tmp_path / "out").stdout.splitlines()[:-3]
    del lines[1]  # the line below the heads
    assert lines[0].split() == ["problem", "representation", "method", "error", "±", "α", "λ"]
    assert max(map(len, lines)) <= 80
    rows = pq.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    means = {}
    for row in rows:
        group = means.setdefault((row["problem"], row["representation"], row["method"]), {})
        group.setdefault((row["step_size"], row["trace_decay"]), []).append(row["error"])
    assert len(lines) == 1 + len(means)
    for line, (group, found) in zip(lines[1:], sorted(means.items()), strict=True):
        error, (alpha, lam) = min((np.mean(errors), parameters) for parameters, errors in found.items())
        spread = 4.30265 * np.std(found[alpha, lam], ddof=1) / np.sqrt(3)  # the quantile of t with 2 degrees of freedom
        cells = line.split()
        assert cells[:-4] == " ".join(group).split()
        assert [cells[-4], *cells[-2:]] == [f"{value:.4g}" for value in (error, alpha, lam)]
        assert float(cells[-3]) == pytest.approx(spread, rel=0.06), "two digits"
    starts = {line.index(cell) for line, cell in zip(lines[1:], [key[2] for key in sorted(means)], strict=True)}
    assert starts == {lines[0].index("method")}, "columns stand below each other"


def test_the_figure_shows_every_method_that_did_not_diverge(spec, tmp_path):
    result = sweep(spec, "--out", tmp_path / "out", "--figure", tmp_path / "figures" / "sweep.svg")
    assert result.exit_code == 0, result.output
    assert f"The figure is in {tmp_path}/figures/sweep.svg." in result.stdout
    assert (tmp_path / "figures" / "sweep.svg").read_text().count("<path") > 50
    png = tmp_path / "sweep.png"
    sweep_figure.draw(to.sweep(to.problems.random_walk(), step_sizes=[0.1, 1e9], trace_decays=[1.0], runs=1), png)
    assert png.read_bytes()[:4] == b"\x89PNG"


def test_lines_of_a_figure_can_be_told_apart():
    looks = sweep_figure.looks_of(["gtd, η = 0.25", "gtd, η = 4", "mine", "yours", "mine", "theirs", "true_online"])
    assert len({(look.colour, look.dashes, look.marker) for look in looks.values()}) == len(looks) == 6
    assert len({looks[name].colour for name in ("gtd, η = 4", "mine", "yours", "theirs", "true_online")}) == 5
    assert looks["gtd, η = 0.25"] == to.catalog.METHODS["gtd"].look
    assert looks["gtd, η = 4"].colour == looks["gtd, η = 0.25"].colour


def test_a_plot_has_each_method_at_its_best_and_bands_of_student_t():
    options = {"step_sizes": [0.1, 0.4], "trace_decays": [0.0, 0.8], "runs": 4, "steps": 20}
    table = to.sweep(to.problems.random_walk(), ["accumulate", "true_online"], **options)
    axes = study.plot(table, x="trace_decay", interval=0.9, titles={"true_online": "ours"})
    best = {row["method"]: row for row in study.Summary(table).best.to_pylist()}
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        f"{title}, α = {best[name]['step_size']:g}"
        for name, title in (("accumulate", "accumulate TD(λ)"), ("true_online", "ours"))
    ]
    for (method, row), line, band in zip(best.items(), axes.lines, axes.collections, strict=True):
        errors = [
            [each["error"] for each in table.to_pylist()
             if (each["method"], each["step_size"], each["trace_decay"]) == (method, row["step_size"], lam)]
            for lam in options["trace_decays"]
        ]  # fmt: skip
        half = 2.353363 * np.std(errors, axis=1, ddof=1) / 2.0  # the quantile of t with 3 degrees of freedom
        np.testing.assert_allclose(line.get_xydata(), np.transpose([options["trace_decays"], np.mean(errors, axis=1)]))
        edges = band.get_paths()[0].vertices[:, 1]
        assert (edges.max(), edges.min()) == pytest.approx(
            ((np.mean(errors, axis=1) + half).max(), (np.mean(errors, axis=1) - half).min()), rel=1e-5
        )


def test_a_method_without_the_parameter_of_a_plot_is_a_level_line():
    grid = {"step_sizes": [0.01], "trace_decays": [0.0], "runs": 3, "steps": 20, "parameters": {"bound": [0.1, 0.5]}}
    table = to.sweep(to.problems.random_walk(), ["swift_td", "true_online"], **grid)
    lines = {tuple(line.get_xdata()): line.get_ydata() for line in study.plot(table, x="bound").lines}
    (mean,) = {row["error"] for row in study.Summary(table).best.to_pylist() if row["method"] == "true_online"}
    assert lines.keys() == {(0.1, 0.5), (0, 1)}  # a level line has the axes' own places
    assert {*lines[0, 1]} == {mean}


def test_what_a_plot_cannot_show_is_refused():
    table = to.sweep([to.problems.random_walk()] * 2, "true_online", [0.1], [0.5], runs=2, steps=5)
    for given, message in (
        ({}, "results of 2 problems"),
        ({"x": "pull"}, "x must be one of step_size, trace_decay, got 'pull'"),
    ):
        with pytest.raises(ValueError, match=message):
            study.plot(table, **given)
    with pytest.raises(ValueError, match=r"interval must be between 0 and 1, .* got 95"):
        study.plot(table.filter(pc.field("problem") == "FiniteMRP 1"), interval=95)


def test_the_best_settings_are_confirmed_by_fresh_runs(spec, tmp_path):
    result = sweep(spec, "--out", tmp_path / "out", "--confirm", "4")
    assert result.exit_code == 0, result.stderr
    assert "over 4 runs" in result.stdout
    assert "chosen by these runs" not in result.stdout
    found, fresh = (pq.read_table(tmp_path / "out" / f"{name}.parquet") for name in ("results", "confirmed"))
    names = ["problem", "representation", "method", "step_size", "trace_decay"]
    assert fresh.group_by(names).aggregate([("run", "count")]).select(names).sort_by(
        [(name, "ascending") for name in names]
    ) == (study.Summary(found).best.select(names).sort_by([(name, "ascending") for name in names]))
    assert set(fresh["error"].to_pylist()).isdisjoint(found["error"].to_pylist())
    with pytest.raises(ValueError, match="confirm must be"):
        to.sweep(to.problems.random_walk(), confirm=0)


def test_summaries_and_plots_take_data_frames_and_name_what_is_missing():
    methods, grid = ["gtd", "tdrc"], {"regularization": [0.0, 1.0]}  # gtd has no regularization: null in its rows
    table = to.sweep(to.problems.baird(), methods, [0.01, 0.02], [0.5], runs=2, steps=5, parameters=grid)
    pandas = table.to_pandas()
    for frame in (pandas, pandas[pandas["run"] >= 0], polars.from_arrow(table)):
        assert str(study.Summary(frame)) == str(study.Summary(table))
        assert len(study.plot(frame).lines) == 2
    with_gap = pa.concat_tables([table, table.slice(0, 1).set_column(5, "error", pa.array([None], pa.float64()))])
    for show in (study.plot, study.Summary):
        with pytest.raises(ValueError, match="error is missing in row 12 of the table"):
            show(with_gap)
        with pytest.raises(ValueError, match="table has no column 'method', as the results of a sweep have"):
            show(pa.table({"a": [1.0]}))
        with pytest.raises(ValueError, match=r"table must be the results of a sweep, a table or a data frame, got \[1\]"):
            show([1])
    assert len(study.plot(with_gap.filter(pc.field("error").is_valid())).lines) == 2


def test_a_figure_of_an_unknown_kind_is_refused_before_anything_is_computed(spec, tmp_path):
    result = sweep(spec, "--out", tmp_path / "out", "--figure", "sweep.jpeg")
    assert result.exit_code == 1
    assert "--figure must end in .png, .pdf, .svg, got 'sweep.jpeg'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_by_default_the_results_go_into_the_folder_sweep(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, again = (sweep(spec, "--threads", "2") for _ in range(2))
    assert first.exit_code == 0
    assert again.stdout == first.stdout
    assert (tmp_path / "sweep" / "results.parquet").exists()


def test_shares_end_with_the_same_table_as_one_command(spec, tmp_path):
    whole = sweep(spec, "--out", tmp_path / "whole")
    for share in ("2/3", "1/3"):
        result = sweep(spec, "--out", tmp_path / "out", "--shard", share)
        assert result.exit_code == 0
        folder = tmp_path / "out"
        said = f"Share {share} is done; others are not. Their results belong into {folder}/tasks as well.\n"
        assert result.stdout == said
        assert not (folder / "results.parquet").exists()
    last = sweep(spec, "--out", tmp_path / "out", "--shard", "3/3")
    assert last.exit_code == 0
    assert last.stdout == whole.stdout.replace(str(tmp_path / "whole"), str(tmp_path / "out"))
    assert (tmp_path / "out/results.parquet").read_bytes() == (tmp_path / "whole/results.parquet").read_bytes()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("[[problems", [], "is not TOML"),
        (SPEC, ["--engine", "dask"], "the engine dask needs the extra: pip install 'trueonline[dask]'"),
        (SPEC, ["--shard", "4/3"], "shard must be i/N with 1 ≤ i ≤ N, got '4/3'"),
    ],
)
def test_mistakes_are_said_in_a_line_and_leave_no_folder(spec, tmp_path, monkeypatch, text, options, message):
    monkeypatch.setitem(sys.modules, "distributed", None)
    spec.write_text(text)
    result = sweep(spec, "--out", tmp_path / "out", *options)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), "an error that is shown, not one that escaped"
    said = [line for line in result.stderr.splitlines() if line and not line.startswith("Sweeping")]
    assert len(said) == 1
    assert said[0].startswith("Error: ")
    assert message in said[0]
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_does_not_answer_is_a_mistake_said_in_a_line(spec, tmp_path):
    import dask

    pytest.importorskip("distributed")  # its defaults must be there before, or they would be gone afterwards
    with dask.config.set({"distributed.comm.timeouts.connect": "0.3s"}):
        result = sweep(spec, "--out", tmp_path / "out", "--engine", "dask:tcp://127.0.0.1:1")
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "Timed out" in result.stderr.splitlines()[-1]
    assert "127.0.0.1:1" in result.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()


# --- Learning about one policy from another -------------------------------------------------------

OFF_POLICY = """
methods = ["off_policy", "provisional_td", { method = "gtd", eta = [0.0, 4] }, { method = "true_online_gtd", eta = 0.1234567 }]
step_sizes = [0.01, 0.1]
trace_decays = [0.0, 0.9]
runs = 2
steps = 30
after = 10
seed = 1
[[problems]]
kind = "baird"
[[problems]]
kind = "off_policy.two_state"
discount = 0.95
[[problems]]
kind = "random_mdp"
n_states = 5
n_actions = 2
branching = 2
sigma = 0.1
distance = 0.7
seed = 3
representations = ["as_is", "binary"]
[[problems]]
kind = "arrays"
path = "mine.npz"
"""


def test_off_policy_problems_and_methods_can_be_named(tmp_path):
    two = to.problems.off_policy.two_state()
    parts = ("transitions", "behaviour", "target", "features")
    policies = {name: getattr(two, name) for name in parts} | {"rewards": np.ones((2, 2, 2)), "discount": 0.5, "start": 1}
    np.savez(tmp_path / "mine.npz", **policies)
    (tmp_path / "spec.toml").write_text(OFF_POLICY)

    mdp = to.problems.random_mdp(5, 2, 2, 0.1, distance=0.7, seed=3)
    meant = {
        ("baird 1", "as_is"): to.problems.baird(),
        ("off_policy.two_state 2", "as_is"): to.problems.off_policy.two_state(0.95),
        ("random_mdp 3", "as_is"): mdp,
        ("random_mdp 3", "binary"): mdp.with_features(to.features.binary_code(5)),
        ("arrays 4", "as_is"): to.problems.OffPolicyProblem(**policies),
    }
    methods = {
        "off_policy": None,
        "provisional_td": to.ProvisionalTD,
        "gtd, η = 0": study.SweptMethod("gtd", second=0.0),
        "gtd, η = 4": study.SweptMethod("gtd", second=4.0),
        "true_online_gtd, η = 0.1234567": study.SweptMethod("true_online_gtd", second=0.1234567),
    }
    grid = {"step_sizes": [0.01, 0.1], "trace_decays": [0.0, 0.9], "runs": 2, "steps": 30, "after": 10, "seed": 1}
    expected = [study.Case(problem, methods, **grid) for problem in meant.values()]
    cases = sweep_file.read(tmp_path / "spec.toml")
    assert [tuple(case.labels.values()) for case in cases] == [*meant]
    assert [[task.name for task in case.tasks()] for case in cases] == [
        [task.name for task in case.tasks()] for case in expected
    ]


# --- The examples ---------------------------------------------------------------------------------


@pytest.mark.apart
def test_the_example_of_a_method_of_ones_own_runs_and_gives_the_answer_it_promises():
    done = subprocess.run([sys.executable, EXAMPLES / "own_method.py"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    rows = {line.split()[1]: float(line.split()[2]) for line in lines if line.startswith("sweep:")}
    assert set(rows) == {"accumulate", "true_online", "dutch"}
    assert rows["true_online"] < 0.5 * rows["dutch"]
    assert "loaded: 1000 steps" in lines
    assert any(line.startswith("verify: not exact") for line in lines)


@pytest.mark.apart
def test_the_example_of_a_problem_of_ones_own_runs():
    done = subprocess.run([sys.executable, EXAMPLES / "own_problem.py"], capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in done.stdout.splitlines()[1:]} == {"accumulate", "replace", "true_online"}


def test_the_problem_of_the_example_is_right(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from own_problem import House

    house = House()
    chain = to.problems.FiniteMRP(
        np.roll(np.eye(24), 1, axis=1),
        np.repeat(house.load[:, None], 24, axis=1),
        features=house.features,
        discount=house.discount,
    )
    np.testing.assert_allclose(house.features @ house.lms_weights, chain.features @ chain.lms_weights, rtol=1e-9)
    np.testing.assert_allclose(house.metric, chain.metric, rtol=1e-9)
    np.testing.assert_array_equal(house.trajectory(30, 1)[0], chain.trajectory(30, 1).states)


def test_the_examples_of_specs_read_and_run(tmp_path):
    cases = sweep_file.read(EXAMPLES / "off_policy_sweep.toml")
    assert [(len(case.methods), case.steps, case.after) for case in cases] == [(6, 2000, 1800)] * 4
    cases = sweep_file.read(EXAMPLES / "own_sweep.toml")
    assert [tuple(case.labels.values()) for case in cases] == [
        ("small", "tabular"),
        ("small", "binary"),
        ("small", "binary_unit"),
        ("small", "non_binary"),
        ("random_walk 2", "as_is"),
        ("random_walk 2", "binary"),
    ]
    text = (EXAMPLES / "own_sweep.toml").read_text()
    assert "runs = 50 " in text
    np.savez(tmp_path / "my_process.npz", transitions=[[0.5, 0.5], [1.0, 0.0]], rewards=[[1.0, 0.0], [2.0, 0.0]])
    commented = '# [[problems]]\n# kind = "arrays"\n# path'
    assert commented in text
    reduced = text.replace("runs = 50 ", "runs = 2 ").replace(commented, commented.replace("# ", ""))
    (tmp_path / "spec.toml").write_text(reduced)
    result = sweep(tmp_path / "spec.toml", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert pq.read_table(tmp_path / "out" / "results.parquet").num_rows == 7 * 2 * 6 * 6 * 2
    assert "arrays 3" in result.stdout


def test_the_slurm_template_gives_each_job_its_share_and_stops_where_something_is_not_set(tmp_path):
    """A script in the place of the command prints what it is told."""
    (tmp_path / "trueonline").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "trueonline").chmod(0o755)
    job = {
        "SLURM_ARRAY_TASK_ID": "2",
        "SLURM_ARRAY_TASK_COUNT": "3",
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
    }

    def run(**more):
        command = ["bash", EXAMPLES / "sweep.sbatch", "my/spec.toml"]
        return subprocess.run(command, env={**job, **more}, capture_output=True, text=True, check=False)

    assert run(SCRATCH="/all").stdout == "sweep my/spec.toml --out /all/spec --shard 2/3 --threads 1\n"
    stopped = run()
    assert stopped.returncode != 0
    assert "SCRATCH" in stopped.stderr
    assert stopped.stdout == ""
