"""The paper's experiments, scaled down: they run, leave what they promise, and judge as they should."""

import json
import math

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from trueonline import study
from trueonline.cli import main
from trueonline.lab import reproduction
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Errors, resample
from trueonline.lab.experiment import Settings
from trueonline.lab.experiments import appendix_c, fig2, fig3, fig4, many_mrps, mrp_grid, random_mrps
from trueonline.lab.registry import DEFAULT, EXPERIMENTS, experiment
from trueonline.problems import one_state

APART = ["many-mrps", "mrp-grid", "asterix", "mountain-car", "stream-x", "offpolicy", "collision", "average-reward"]
NAMES = ["fig1", "fig2", "fig3", "fig4", "appendix-c", "fig9", "cost", "myoelectric", "textbook", *APART]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """Everything that is quick, with few runs, and Appendix C for one of the three MRPs: to draw it is slow."""
    out = tmp_path_factory.mktemp("reproduction")
    names = [name for name in DEFAULT if name not in ("cost", "myoelectric")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appendix_c, "MRPS", random_mrps.MRPS[:1])
        result = CliRunner().invoke(main, ["reproduce", *names, "--out", str(out), "--runs", "3"])
    assert result.exit_code == 0, result.output
    return out, names, result.stdout


def test_the_list_has_every_experiment():
    result = CliRunner().invoke(main, ["reproduce", "--list"])
    assert [line.split()[0] for line in result.stdout.splitlines()[2:]] == NAMES == list(EXPERIMENTS)
    assert set(DEFAULT) == set(NAMES) - set(APART)


def test_every_experiment_leaves_its_files(reproduced):
    out, names, _ = reproduced
    for name in names:
        for file in ("figure.png", "figure.pdf", "data.csv", "data.parquet"):
            assert (out / name / file).stat().st_size > 500, (name, file)
        assert (out / name / "figure.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert (out / name / "figure.pdf").read_bytes()[:5] == b"%PDF-"
        table = pq.read_table(out / name / "data.parquet")
        assert len((out / name / "data.csv").read_text().splitlines()) == table.num_rows + 1
    assert (out / "report.html").stat().st_size > 100_000
    assert not list(out.rglob("*.part"))


def test_the_verdicts_are_said_in_file_terminal_and_report(reproduced):
    out, names, printed = reproduced
    verdicts = json.loads((out / "verdicts.json").read_text())
    assert [each for each in names if each in {verdict["experiment"] for verdict in verdicts}] == names
    page = (out / "report.html").read_text()
    for verdict in verdicts:
        assert set(verdict) == {"experiment", "claim", "verdict", "numbers"}
        assert verdict["verdict"] in (HOLDS, FAILS, NOISE)
        assert verdict["numbers"]
        assert verdict["claim"] in printed
        assert verdict["claim"] in page
    assert f"{len(verdicts)} claims" in printed
    assert "Here there are 3 runs of each setting." in page
    assert "averaged over 50 runs" not in page


def test_three_runs_decide_only_equalities(reproduced):
    out, _, printed = reproduced
    verdicts = json.loads((out / "verdicts.json").read_text())
    undecided = [each for each in verdicts if "not decided" in each["numbers"]]
    assert {each["verdict"] for each in undecided} == {NOISE}
    assert f"{len(undecided)} of them cannot be decided by so few runs: intervals need at least 5" in printed
    for each in verdicts:
        if "not decided" not in each["numbers"]:
            assert not any("95 %" in number for number in each["numbers"]), each


def test_what_theory_demands_holds(reproduced):
    out, _, _ = reproduced
    verdicts = {each["claim"]: each["verdict"] for each in json.loads((out / "verdicts.json").read_text())}
    for claim in (
        "True online TD(λ) lies on the online λ-return algorithm",
        "At the end of an episode, online and offline λ-return algorithm agree for λ = 1 (no bootstrapping)",
        "The offline λ-return algorithm makes updates only at the end of an episode",
        "True online TD(λ) is the online λ-return algorithm (so its curve stands for both)",
        "The best step-size of the online λ-return algorithm is 1",
        "Replace TD(λ) behaves exactly as TD(0), for any λ, at all time steps",
        "For λ = 1 accumulate TD(λ) and the online λ-return algorithm converge to the least mean squares error, 1",
    ):
        assert verdicts[claim] == HOLDS, claim


def test_time_in_which_no_sweep_runs_is_not_that_of_the_sweep(monkeypatch):
    """The second sweep finds a result that was there before. Looking for it, and what came before it, took 100 s."""
    now, seen = [5.0], []
    monkeypatch.setattr(reproduction.time, "perf_counter", lambda: now[0])
    watch = reproduction._Watch(lambda *state: seen.append(state))
    for seconds, task, done in ((0, None, 0), (3, "a", 1), (4, "b", 2), (100, None, 3), (2, "d", 4)):
        now[0] += seconds
        watch(task, done, 4)
    assert watch.seconds == 9.0
    assert seen == [(None, 0, 4), ("a", 1, 4), ("b", 2, 4), (None, 3, 4), ("d", 4, 4)]


def test_figures_that_share_a_study_compute_and_read_it_once(reproduced, monkeypatch):
    out, _, _ = reproduced
    before = {path: path.stat().st_mtime_ns for path in (out / "tasks").iterdir()}
    # 3 MRPs × (3 methods on tabular and binary, 2 on non-binary and unit length)
    assert len(before) == 3 * (3 + 3 + 2 + 2)
    made, errors = [], random_mrps.errors
    monkeypatch.setattr(random_mrps, "errors", lambda case, settings: made.append(case) or errors(case, settings))
    settings = Settings(out / "tasks", runs=3)
    notes = {experiment(name).run(settings).note for name in ("fig4", "fig9", "appendix-c")}
    assert notes == {"Here there are 3 runs of each setting."}
    assert len(made) == 3 * 4
    assert {path: path.stat().st_mtime_ns for path in (out / "tasks").iterdir()} == before


def errors_by_lam(small, large):
    """Errors of six runs. At small and large λ the two methods differ by these shares; runs differ by a little noise."""
    noise = 1.0 + 0.001 * np.random.default_rng(0).normal(size=(6, 1, 1))
    shares = np.where(random_mrps.LAMS <= 0.3, small, np.where(random_mrps.LAMS >= 0.9, large, 0.0))
    theirs = np.ones((6, len(random_mrps.ALPHAS), 1)) * noise
    labels = {"mrp": "m", "representation": "tabular"}
    return Errors({"true_online": theirs * (1.0 - shares), "accumulate": theirs + 0.0 * shares}, 0, labels)


@pytest.mark.parametrize(("small", "large", "verdict"), [(0.01, 0.2, HOLDS), (0.2, 0.01, FAILS)])
def test_differences_at_small_and_large_trace_decays_are_judged_by_an_interval(small, large, verdict):
    assert fig4.small_lambda([errors_by_lam(small, large)]).verdict == verdict
    noisy = errors_by_lam(0.1, 0.1)
    noisy.by_method["true_online"][:3, :, random_mrps.LAMS >= 0.9] *= 1.1
    noisy.by_method["true_online"][3:, :, random_mrps.LAMS <= 0.3] *= 1.1
    assert fig4.small_lambda([noisy]).verdict == NOISE


def test_a_picture_that_fails_costs_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(fig3, "_picture", lambda errors: 1 / 0)
    result = CliRunner().invoke(main, ["reproduce", "fig3", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "The picture figure of fig3 could not be drawn. ZeroDivisionError: division by zero" in result.stderr
    assert "The picture figure could not be drawn" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "fig3" / "data.csv").exists()
    assert len(json.loads((tmp_path / "verdicts.json").read_text())) == 4


def test_what_cannot_be_used_is_refused_before_the_first_experiment_runs(tmp_path):
    names = ["reproduce", "fig1", "myoelectric", "--data", str(tmp_path / "nowhere.csv"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(main, names)
    assert (result.exit_code, "there is no file" in result.stderr) == (1, True)
    assert not (tmp_path / "out" / "fig1").exists()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_data_and_another_gives_other(reproduced, tmp_path):
    out, _, _ = reproduced
    for seed, equal in ((0, True), (1, False)):
        folder = tmp_path / str(seed)
        CliRunner().invoke(main, ["reproduce", "fig4", "--out", str(folder), "--runs", "3", "--seed", str(seed)])
        found = pq.read_table(folder / "fig4" / "data.parquet").equals(pq.read_table(out / "fig4" / "data.parquet"))
        assert found is equal


def test_many_mrps_has_a_row_for_each_mrp_representation_and_method(tmp_path):
    arguments = ["reproduce", "many-mrps", "--out", str(tmp_path), "--mrps", "2", "--runs", "2"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    rows = pq.read_table(tmp_path / "many-mrps" / "data.parquet").to_pylist()
    assert len(rows) == 2 * 3 * (3 + 3 + 2)
    assert all(row["over_td0"] <= 1.0 + 1e-12 for row in rows)
    assert "Here there are 2 MRPs of each class, with 2 runs on each." in (tmp_path / "report.html").read_text()
    tasks = tmp_path / "tasks"
    case = random_mrps.cases(2, Settings(tasks), 2, ("binary",))[0]
    errors = study.gather(case, tasks).filter(pc.field("method") == "replace")["error"].to_numpy()
    place = (2, case.labels["mrp"], "binary", "replace")
    (found,) = (row for row in rows if (row["number"], row["mrp"], row["representation"], row["method"]) == place)
    assert found["error"] == errors.reshape(2, -1).mean(axis=0).min()


@pytest.fixture
def small_grid(monkeypatch):
    monkeypatch.setattr(mrp_grid.spec, "STATES", (9, 12))  # both have features of width 4, as Figure 4 has: few kernels
    monkeypatch.setattr(mrp_grid.spec, "BRANCHES", (1, 0))
    monkeypatch.setattr(mrp_grid.spec, "NOISES", (0.0, 1.0))


def test_the_grid_has_the_papers_classes_and_their_steps():
    assert len(mrp_grid.spec.classes()) == 165 == len(set(mrp_grid.spec.classes()))
    assert {(k, b, sigma) for k, b, sigma, _ in random_mrps.CLASSES} <= set(mrp_grid.spec.classes())
    assert all(mrp_grid.spec.STEPS_PER_STATE * k == steps for k, _, _, steps in random_mrps.CLASSES)
    assert all(1 <= b <= k for k, b in mrp_grid.spec.shapes())


@pytest.mark.usefixtures("small_grid")
def test_mrps_of_the_grid_that_differ_in_noise_alone_are_the_same_process(tmp_path):
    made = mrp_grid.cases(1, Settings(tmp_path), 1)
    assert [case.labels["mrp"] for case in made[::3]] == [mrp_grid.spec.label(*kind) for kind in mrp_grid.spec.classes()]
    for calm, noisy in zip(made[0:3], made[3:6], strict=True):
        assert (calm.problem.reward_std, noisy.problem.reward_std) == (0.0, 1.0)
        for part in ("transitions", "rewards", "features"):
            np.testing.assert_array_equal(getattr(calm.problem, part), getattr(noisy.problem, part))
    other = mrp_grid.cases(2, Settings(tmp_path), 1)
    assert all((one.problem.rewards != two.problem.rewards).any() for one, two in zip(made, other, strict=True))


@pytest.mark.usefixtures("small_grid")
def test_the_advantages_of_the_grid_are_those_of_its_mrps(tmp_path):
    arguments = ["reproduce", "mrp-grid", "--out", str(tmp_path), "--mrps", "5", "--runs", "2"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "mrp-grid"
    rows = pq.read_table(folder / "data.parquet").to_pylist()
    assert len(rows) == len(mrp_grid.spec.classes()) * 5 == 8 * 5
    each = pq.read_table(folder / "mrps.parquet").to_pylist()
    errors = {(row["mrp"], row["representation"], row["method"], row["number"]): row["error"] for row in each}
    assert len(errors) == len(each) == 8 * 8 * 5
    for row in rows:
        place = (f"({row['k']}, {row['b']}, {row['sigma']:g})", row["representation"])
        ours = [errors[*place, "true_online", number] for number in range(1, 6)]
        theirs = [errors[*place, row["other"], number] for number in range(1, 6)]
        assert 1.0 - row["advantage"] == pytest.approx((math.prod(ours) / math.prod(theirs)) ** 0.2, rel=1e-9)
        assert row["low"] - 1e-12 <= row["advantage"] <= row["high"] + 1e-12
        assert row["error"] == pytest.approx(math.prod(ours) ** 0.2, rel=1e-9)
        assert row["share_better"] == np.mean(np.array(ours) < np.array(theirs) * (1.0 - 1e-9))
        assert row["steps"] == 10 * row["k"]
    assert (folder / "figure.png").exists()
    assert (folder / "against-replace.png").exists()
    claims = json.loads((tmp_path / "verdicts.json").read_text())
    assert len(claims) == 2 + 3 * 3


@pytest.mark.usefixtures("small_grid")
def test_mrps_that_are_swept_one_after_another_are_counted_together(tmp_path, monkeypatch):
    monkeypatch.setattr(mrp_grid.spec, "MRPS_AT_ONCE", 2)
    counts = []
    settings = Settings(tmp_path, runs=1, options={"mrps": 3}, progress=lambda task, done, of: counts.append((done, of)))
    outcome = mrp_grid.run(settings)
    assert {of for _, of in counts} == {3 * 8 * 8}
    assert [done for done, _ in counts] == sorted(done for done, _ in counts)
    assert counts[-1][0] == 3 * 8 * 8
    assert {claim.verdict for claim in outcome.claims} == {NOISE}, "three MRPs decide nothing"


def grid_logs(change, mrps=12):
    """Log ratios of errors with a small spread, which has the mean 0: MRP by class."""
    half = np.random.default_rng(1).normal(size=(mrps // 2, len(mrp_grid.spec.classes()))) * 0.01
    return np.vstack((half, -half)) + np.array([change(k, b, sigma) for k, b, sigma in mrp_grid.spec.classes()])


@pytest.mark.parametrize(("shift", "verdict"), [(-0.5, HOLDS), (0.0, NOISE), (0.5, FAILS)])
def test_a_claim_about_all_classes_is_decided_by_the_worst_of_them(shift, verdict):
    logs = grid_logs(lambda k, b, sigma: -0.5)
    logs[:, 7] += shift + 0.5
    places = [str(kind) for kind in mrp_grid.spec.classes()]
    claim = mrp_grid.claims.everywhere("replace", logs, places, resample(len(logs)))
    assert claim.verdict == verdict
    assert claim.numbers["in"] == places[7] or shift == -0.5
    assert claim.numbers["which"] == ([places[7]] if verdict == FAILS else "none")


def test_trends_of_the_advantage_have_the_sign_of_what_made_them():
    """The ratio of errors grows with k and shrinks with b, and σ does not matter."""
    logs = grid_logs(lambda k, b, sigma: -1.0 + 0.1 * np.log2(k) - 0.05 * np.log2(b))
    of_states, of_branches, of_noise = mrp_grid.claims.trends("tabular", logs, resample(len(logs)))
    assert [claim.verdict for claim in (of_states, of_branches, of_noise)] == [HOLDS, FAILS, NOISE]
    growth = of_states.numbers["growth of the ratio of errors when k is doubled"]
    assert growth == pytest.approx(np.exp(0.1) - 1.0, rel=1e-9)


def test_cost_measures_both_kinds_of_features(monkeypatch, tmp_path):
    from trueonline.lab.experiments import cost

    monkeypatch.setattr(cost, "SIZES", {"dense": (10, 100), "sparse, 9 active": (2_000,)})
    monkeypatch.setattr(cost, "REPEATS", 3)
    outcome = cost.run(Settings(tmp_path))
    assert outcome.data["features"].to_pylist() == ["dense", "dense", "sparse, 9 active"]
    assert (outcome.data["ratio"].to_numpy() > 0.1).all()
    assert len(outcome.claims) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "fig5"], "unknown experiment 'fig5'; known are fig1, fig2"),
        (["reproduce", "--runs", "0"], "0 is not in the range"),
        (["reproduce", "many-mrps", "--mrps", "1"], "1 is not in the range"),
        (["reproduce", "fig4", "--mrps", "5"], "--mrps is an option of many-mrps and mrp-grid only: name one"),
        (["reproduce", "fig1", "--shard", "1/2"], "--shard is an option of asterix only: name it"),
        (["reproduce", "fig1", "asterix", "--shard", "1/2"], "--shard is an option of asterix only: name it alone"),
        (["reproduce", "fig1", "--data", "x.csv"], "--data is an option of myoelectric only: name it"),
        (["reproduce", "myoelectric", "--rate", "80"], "--rate describes --data, which is not given"),
        (["reproduce", "fig4", "--engine", "cloud", "--runs", "1"], "unknown engine 'cloud'; known are local, dask"),
    ],
)
def test_bad_arguments(arguments, message, tmp_path):
    result = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_figure_2_follows_the_formulas():
    """V_T = V_0 + Tα(1 − V_0) for accumulate and V_0 + (1 − (1 − α)^T)(1 − V_0) for true online, episode by episode."""
    states, rewards, discounts = fig2.episodes(one_state(), 3, 5)
    lengths = np.diff(np.append(-1, np.flatnonzero(discounts == 0.0))).reshape(3, 10)
    for name, factor in (("accumulate", lambda T: 1 - 0.1 * T), ("true_online", lambda T: 0.9**T)):
        values = fig2.values_at_ends(fig2.LEARNERS[name], 0.1, states, rewards, discounts)
        np.testing.assert_allclose(1.0 - values, np.cumprod(factor(lengths), axis=1), rtol=1e-9)


def test_figure_3_reaches_the_fixed_point():
    """The mean update over an episode, α(2 − w(1 + λ)), vanishes at w = 2/(1 + λ)."""
    for lam in (0.0, 0.5, 1.0):
        error, change = fig3.asymptotic_error(fig3.LEARNERS["true_online"], lam)
        w = 2.0 / (1.0 + lam)
        assert error == pytest.approx(np.sqrt(((2.0 - w) ** 2 + w**2) / 2.0), abs=0.02)
        assert change < 0.01


def test_every_experiment_says_what_it_is():
    for name in EXPERIMENTS:
        assert experiment(name).name == name
        assert len(experiment(name).text) > 100


@pytest.mark.parametrize(("mrps", "verdict"), [(2, NOISE), (4, NOISE), (5, HOLDS)])
def test_few_mrps_decide_nothing_but_that_there_is_a_counterexample(mrps, verdict):
    better = {"accumulate": np.full(mrps, 0.9), "true_online": np.full(mrps, 0.6)}
    first, *others = many_mrps.claims({("(10, 3, 0.1)", "non-binary"): better}, 0, 10)
    assert {first.verdict, *(claim.verdict for claim in others)} == {verdict}
    worse = {**better, "true_online": np.full(mrps, 1.0)}
    first, *others = many_mrps.claims({("(10, 3, 0.1)", "non-binary"): worse}, 0, 10)
    assert first.verdict == FAILS
    assert first.numbers["where better, by (median)"] == 0.0
    assert {claim.verdict for claim in others} == {FAILS if verdict == HOLDS else NOISE}
