"""The results that the documentation shows: they are stored part by part, and pages are made from what is stored."""

import csv
import gzip
import io
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from PIL import Image

from trueonline import catalog
from trueonline.lab import reproduce_command
from trueonline.lab.claims import FAILS, HOLDS, NOISE, SEVERAL
from trueonline.lab.registry import EXPERIMENTS, experiment

ROOT = Path(__file__).parents[1]
STORED = ROOT / "docs" / "results" / "data"
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_ext")]  # as docs/conf.py does
pages = import_module("stored_results")
store = import_module("benchmarks.store")
report = import_module("benchmarks.report")
peers = import_module("benchmarks.peers")

pytestmark = pytest.mark.apart

MACHINE = {"date": "2026-01-01 00:00 UTC", "CPU": "some", "cores": "2, load at the beginning 0.1"}
MACHINE |= {"trueonline": "1, commit 0"}


def written(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


# --- Pages ----------------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path):
    """Two experiments with four claims, and one section of the benchmarks."""
    data = tmp_path / "data"
    entry = {"command": "trueonline reproduce", "seconds": 1.0, "seed": 0, "machine": MACHINE}
    written(data / "about.json", {"verify": entry, "fig4": entry, "many-mrps": entry})
    verdicts = [
        ("fig4", "a_b holds", HOLDS, {"x": 1 / 3, "interval": [-0.25, 1e-12], "all": [0.5, 1, 2, 3, 4, 5]}),
        ("fig4", "|V − G| fails", FAILS, {"ratio": "Infinity"}),
        ("many-mrps", "close", NOISE, {}),
        ("many-mrps", "also close", NOISE, {}),
    ]
    names = ("experiment", "claim", "verdict", "numbers")
    written(data / "verdicts.json", [dict(zip(names, each, strict=True)) for each in verdicts])
    written(data / "verify.json", {"true_online": {"max_error": 1e-13, "exact": True}})
    header = "mrp,representation,method,trace_decay,error,step_size,low,high"
    rows = ["M,tabular,true_online,0,0.5,0.1,0.4,0.6", "M,tabular,true_online,0.9,0.3,0.2,0.2,0.4"]
    written(data / "fig4" / "data.csv", "\n".join([header, *rows, "M,tabular,replace,0,0.7,1,0.6,0.8"]))
    header, rows = "number,mrp,representation,method,over_td0", ("1,M,binary,replace,0.5", "2,M,binary,replace,1")
    (data / "many-mrps").mkdir()
    (data / "many-mrps" / "data.csv.gz").write_bytes(gzip.compress("\n".join([header, *rows]).encode()))
    for name in ("fig4", "many-mrps"):
        Image.new("RGB", (4, 4)).save(data / name / "figure.png")
    written(data / "benchmarks.json", {"flat": stored_section()})
    return tmp_path


def section():
    rows = [["a", report.Seconds(1e-7), report.Ratio(2.0, 1.5, 3.0)], ["b", report.Bytes(1000), "–"]]
    targets = [report.Target("fast | small", "≤ 1×", report.Ratio(2.0, 1.5, 3.0), met=False)]
    targets += [report.Target("exact", "none", "none", met=True)]
    return report.Section(
        "Flat", "About it.", [report.Table(["what", "x", "y"], rows)], targets, ["A note."], {"p.png": "P"}
    )


def stored_section():
    return report.as_data(section()) | {"machine": MACHINE, "rounds": 7, "quick": False, "seconds": 3.0}


def test_the_overview_has_every_claim_with_its_verdict_and_names_what_is_not_stored(results):
    pages.write(results)
    text = (results / "verdicts.md").read_text()
    assert "{bdg-success}`holds` a\\_b holds" in text
    assert "{bdg-danger}`does not hold` \\|V − G\\| fails" in text
    assert text.count("{bdg-warning}`within noise` ") == 2
    assert text.index("## Does not hold") < text.index("## Within noise") < text.index("## Holds")
    assert "| [Figure 4 — random MRPs](experiments/fig4.md) | 1 | – | 1 |" in text
    assert "1 are exact" in text
    assert "fails\n\n  [ratio: ∞]{.numbers}" in text
    assert "x: 0.333" not in text, "numbers of what does not hold alone"
    listed, missing = text.split("## Not stored")
    for name in EXPERIMENTS:
        stored = name in ("fig4", "many-mrps")
        assert (results / "experiments" / f"{name}.md").exists() is stored
        assert (f"experiments/{name}.md" in listed) is stored
        assert (f"- `{name}`, " in missing) is not stored


def test_a_page_has_the_figure_the_numbers_and_the_best_rows(results):
    pages.write(results)
    text = (results / "experiments" / "fig4.md").read_text()
    assert "{figure} ../data/fig4/figure.png\n:alt: Figure 4 — random MRPs\n:figclass: narrow\n" in text  # of 4 pixels
    assert "x: 0.3333; interval: \\[−0.25, 1·10⁻¹²\\]; all: 6 values from 0.5 to 5" in text
    assert "ratio: ∞" in text
    assert "| M | tabular | true online TD(λ) | 0.3 | 0.2 | 0.4 | 0.2 | 0.9 |" in text
    assert "0.5 | 0.4 | 0.6" not in text
    many = (results / "experiments" / "many-mrps.md").read_text()
    assert "{download}`data.csv.gz <../data/many-mrps/data.csv.gz>`" in many
    assert "| M | binary | replace TD(λ) | 0.75 |" in many


def test_the_best_of_a_table_is_that_of_means_over_runs(tmp_path):
    """Agents have other names in the data of Asterix than in the catalogue."""
    rows = ["replace,0.9,0.5,0,200", "replace,0.9,0.5,1,300", "replace,0.9,0.1,0,480", "replace,0.9,0.1,1,10"]
    rows += ["random,0,0,0,7"]
    written(tmp_path / "data.csv", "\n".join(["method,trace_decay,step_size,run,score", *rows]))
    about, *lines = pages.best_table(experiment("asterix").best, tmp_path / "data.csv")
    assert about == "The largest mean score of each method over α, λ:"
    assert lines[-2:] == ["| replace Sarsa(λ) | 250 | 0.5 | 0.9 |", "| random play | 7 | 0 | 0 |"]


def test_times_of_a_busy_machine_are_marked(results, monkeypatch):
    monkeypatch.setattr(pages, "TIMED", ("fig4", "many-mrps"))
    about = json.loads((results / "data" / "about.json").read_text())
    about["fig4"]["machine"] = MACHINE | {"cores": "2, load at the beginning 3.5"}
    written(results / "data" / "about.json", about)
    pages.write(results)
    assert "a load of 3.5 on 2 cores" in (results / "experiments" / "fig4.md").read_text()
    assert "a load of" not in (results / "experiments" / "many-mrps.md").read_text()


def test_pages_that_do_not_change_are_left_alone_and_those_of_experiments_that_are_gone_go_too(results):
    written(results / "experiments" / "old.md", "# Old")
    pages.write(results)
    assert not (results / "experiments" / "old.md").exists()
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*.md")}
    pages.write(results)
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*.md")} == before


def test_without_stored_results_the_pages_say_so(tmp_path):
    pages.write(tmp_path)
    assert all(f"- `{name}`, " in (tmp_path / "verdicts.md").read_text() for name in EXPERIMENTS)
    assert "No benchmarks are stored" in (tmp_path / "benchmarks.md").read_text()


@pytest.mark.parametrize("name", ["about.json", "verdicts.json", "verify.json", "benchmarks.json", "fig4/data.csv"])
@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:-9], lambda content: b"\xff\xfe"])
def test_a_damaged_file_is_named_and_no_page_changes(results, name, damage):
    pages.write(results)
    written(results / "verdicts.md", "as it was")
    file = results / "data" / name
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=rf"{name.partition('/')[0]} is damaged.*restore it with git"):
        pages.write(results)
    assert (results / "verdicts.md").read_text() == "as it was"


@pytest.mark.parametrize("name", ["fig4/data.csv", "verdicts.json"])
def test_a_stored_experiment_without_its_table_or_its_claims_is_refused(results, name):
    (results / "data" / name).unlink()
    with pytest.raises(ValueError, match="fig4 is damaged or lacks a file"):
        pages.write(results)
    assert not list(results.rglob("*.md"))


def test_verdicts_have_the_same_words_everywhere():
    assert set(pages.BADGES) == set(reproduce_command.LOOKS) == set(SEVERAL) == {HOLDS, FAILS, NOISE}


def test_sections_come_back_from_json_as_they_were_also_judged_by_numpy():
    assert report.from_data(json.loads(json.dumps(report.as_data(section())))) == section()
    judged = report.at_most("fast", 1.0, report.Ratio(*np.array([2.0, 1.5, 3.0])))
    assert json.loads(json.dumps(report.as_data(judged)))["met"] is False


def test_targets_that_are_not_met_are_as_visible_as_those_that_are_and_quick_measurements_are_marked(results):
    pages.write(results)
    text = (results / "benchmarks.md").read_text()
    assert "| fast \\| small | ≤\u00a01× | 2.00× (1.50–\u20603.00) | {bdg-danger}`not met` |" in text
    assert "| exact | none | none | {bdg-success}`met` |" in text
    assert "1 of 2 are met" in text
    assert "![P](data/benchmarks/p.png)" in text
    assert "warning" not in text
    written(results / "data" / "benchmarks.json", {"flat": stored_section() | {"quick": True}})
    pages.write(results)
    assert "few rounds and smaller sizes: flat" in (results / "benchmarks.md").read_text()


# --- What is stored -------------------------------------------------------------------------------


def test_the_stored_results_make_pages(tmp_path):
    copytree(STORED, tmp_path / "data")
    pages.write(tmp_path)
    about = json.loads((STORED / "about.json").read_text())
    assert {path.stem for path in (tmp_path / "experiments").iterdir()} == {name for name in EXPERIMENTS if name in about}


def test_the_stored_files_are_small_and_known():
    sizes = {path.relative_to(STORED): path.stat().st_size for path in STORED.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < 3_800_000
    assert [path for path, size in sizes.items() if path.suffix == ".png" and size > 200_000] == []
    assert [path for path, size in sizes.items() if path.suffix in (".csv", ".gz") and size > 230_000] == []
    about = json.loads((STORED / "about.json").read_text())
    assert set(about) <= set(store.parts(STORED))
    assert {path.parts[0] for path in sizes} & {*EXPERIMENTS} == {*about} & {*EXPERIMENTS}
    assert set(json.loads((STORED / "verify.json").read_text())) <= set(catalog.METHODS)


# --- Storing --------------------------------------------------------------------------------------


@pytest.fixture
def run_store(monkeypatch, tmp_path):
    """Call `python -m benchmarks.store` with two parts: `good`, and `bad`, which fails until it is mended."""
    ran = []
    state = {"mended": False}

    def good(output):
        ran.append(("good", output.strip()))

    def bad(output):
        ran.append(("bad", output.strip()))
        if not state["mended"]:
            raise ValueError("no results")

    command = ("platform",)  # a module that prints a line
    known = {name: store.Part(command, use, captured=True) for name, use in (("good", good), ("bad", bad))}
    monkeypatch.setattr(store, "parts", lambda data, peers_python=None, actions=None: known)

    def call(*arguments):
        ran.clear()
        monkeypatch.setattr(sys, "argv", ["store", "--data", str(tmp_path / "data"), *arguments])
        store.main()
        return [name for name, _ in ran]

    call.about = lambda: json.loads((tmp_path / "data" / "about.json").read_text())
    call.ran, call.state = ran, state
    return call


def test_a_part_that_is_done_is_not_run_again_and_one_that_failed_is(run_store):
    with pytest.raises(SystemExit, match="These parts failed: bad"):
        run_store()
    assert [name for name, _ in run_store.ran] == ["good", "bad"]
    assert list(run_store.about()) == ["good"]
    run_store.state["mended"] = True
    assert run_store() == ["bad"]
    assert run_store() == []
    assert list(run_store.about()) == ["good", "bad"]
    assert run_store("--again", "good") == ["good"]
    assert run_store.about()["good"]["command"] == "platform"
    named = {"date", "CPU", "Python", "NumPy", "Numba", "trueonline", "packages"}
    assert named <= set(run_store.about()["good"]["machine"])
    run_store.state["mended"] = False  # what is asked for again is forgotten first, so that an interrupted run resumes
    with pytest.raises(SystemExit, match="bad"):
        run_store("--again")
    assert list(run_store.about()) == ["good"]


def test_an_experiment_asked_for_again_computes_everything_again(run_store, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "ROOT", tmp_path)
    monkeypatch.setattr(store, "EXPERIMENTS", {"good": "good", "other": "other"})
    for name in ("good", "other"):
        written(tmp_path / store.WORK / name / "tasks" / "1.parquet", "a result")
    run_store("good")
    assert (tmp_path / store.WORK / "good").exists()
    run_store("--again", "good")
    assert [path.name for path in (tmp_path / store.WORK).iterdir()] == ["other"]


def test_an_unknown_part_is_refused(run_store, capsys):
    with pytest.raises(SystemExit):
        run_store("fig5")
    assert "unknown part 'fig5'; known are good, bad" in capsys.readouterr().err


def test_every_experiment_and_every_section_is_a_part(tmp_path):
    known = store.parts(tmp_path, "python")
    assert set(EXPERIMENTS) < set(known)
    assert all(f"benchmarks/{name}" in known for name in store.SECTIONS)
    assert known["fig4"].command[:3] == ("trueonline", "reproduce", "fig4")


@pytest.fixture
def lacks_gpu(monkeypatch):
    monkeypatch.setattr(store, "ON_GPU", ("bad",))
    monkeypatch.setattr(store, "without_gpu", lambda: "no GPU: none here")


def test_a_part_that_needs_a_gpu_is_left_out_with_a_word_where_there_is_none_and_refused_by_name(
    run_store, lacks_gpu, capsys
):
    with pytest.raises(SystemExit):
        run_store("good", "bad")
    assert "bad cannot be run: no GPU: none here" in capsys.readouterr().err
    assert run_store.ran == []
    assert run_store() == ["good"]
    assert "Left out: bad (no GPU: none here)" in capsys.readouterr().out
    assert list(run_store.about()) == ["good"]


def test_what_a_gpu_left_stays_where_there_is_none(run_store, request, capsys):
    run_store.state["mended"] = True
    run_store()
    request.getfixturevalue("lacks_gpu")
    assert run_store() == []
    assert "Left out" not in capsys.readouterr().out, "nothing is missing"
    assert run_store("--again") == ["good"]
    assert set(run_store.about()) == {"good", "bad"}


def test_the_parts_that_need_a_gpu_are_those_that_ask_for_one(tmp_path):
    known = store.parts(tmp_path)
    asking = {name for name, part in known.items() if "cuda" in part.command or part.command[:2] == ("benchmarks", "gpu")}
    assert asking == set(store.ON_GPU)


def test_without_a_driver_the_word_says_so(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # hides GPUs, where there are any
    assert re.fullmatch(r"no GPU: .+", store.without_gpu.__wrapped__())


@pytest.mark.parametrize(("printed", "shown"), [("NVIDIA H200, 580.1\n", "NVIDIA H200, driver 580.1, "), ("", None)])
def test_results_name_the_gpu_if_there_is_one(monkeypatch, printed, shown):
    asked = store.subprocess.CompletedProcess([], 0 if printed else 9, printed)
    monkeypatch.setattr(store.machine.shutil, "which", lambda name: name)
    monkeypatch.setattr(store.machine.subprocess, "run", lambda command, **options: asked)
    found = store.machine._gpu()
    assert set(found) == ({"GPU"} if printed else set())
    assert not printed or re.fullmatch(re.escape(shown) + r"(no numba-cuda|numba-cuda [\d.]+)", found["GPU"])


def test_recorded_actions_are_given_to_their_section_alone(tmp_path):
    known = store.parts(tmp_path, actions=tmp_path / "actions")
    assert [name for name, part in known.items() if "--actions" in part.private] == ["benchmarks/atari_prediction"]
    assert known["benchmarks/atari_prediction"].private == ("--actions", str(tmp_path / "actions"))
    assert "--actions" not in known["benchmarks/atari_prediction"].command, "the page names no place of this machine"


def test_an_experiment_is_stored_small_beside_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "ROOT", tmp_path)
    data, made = tmp_path / "data", tmp_path / store.WORK / "fig1"
    written(data / "verdicts.json", [{"experiment": "fig3", "claim": "c"}, {"experiment": "fig1", "claim": "old"}])
    written(data / "fig1" / "gone.csv", "x")
    written(made / "verdicts.json", [{"experiment": "fig1", "claim": "new"}])
    written(made / "fig1" / "data.csv", "method,n,error\na,123456789,0.123456789\n")
    Image.effect_noise((300, 200), 50).convert("RGB").save(made / "fig1" / "figure.png")
    store.parts(data)["fig1"].store("")
    assert (data / "fig1" / "data.csv").read_text() == "method,n,error\na,123456789,0.12346\n"
    with Image.open(data / "fig1" / "figure.png") as image:
        assert image.size == (300, 200)
        assert len(image.getcolors()) <= store.COLOURS
    assert sorted(path.name for path in (data / "fig1").iterdir()) == ["data.csv", "figure.png"]
    claims = [(each["experiment"], each["claim"]) for each in json.loads((data / "verdicts.json").read_text())]
    assert claims == [("fig1", "new"), ("fig3", "c")]


def test_a_large_table_is_compressed_the_same_way_every_time(tmp_path):
    with (tmp_path / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["x", "y"], *([n, n / 7] for n in range(30_000))])
    name, content = store.table(tmp_path / "data.csv")
    assert name == "data.csv.gz"
    assert (name, content) == store.table(tmp_path / "data.csv")
    rows = list(csv.reader(io.StringIO(gzip.decompress(content).decode())))
    assert len(rows) == 30_001
    assert rows[11] == ["10", "1.4286"]


# --- Peers ----------------------------------------------------------------------------------------


def test_a_peer_that_cannot_run_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    written(tmp_path / "swift_td.py", "raise ModuleNotFoundError('no module')")
    with pytest.raises(peers.Missing, match="no interpreter"):
        peers.Peer(str(tmp_path / "python"), "swift", 3, tmp_path / "stream.npz")
    with pytest.raises(peers.Missing, match=r"stream\.npz"):
        peers.Peer(sys.executable, "swift", 3, tmp_path / "stream.npz")
    with pytest.raises(peers.Missing, match="not installed"):
        peers.Peer(sys.executable, "swift", 3, stream(tmp_path))


def test_a_peer_learns_whenever_it_is_told_to(tmp_path, monkeypatch):
    """The peer here counts its steps."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    written(tmp_path / "swifttd-7.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: swifttd\nVersion: 7.0\n")
    counting = """
class SwiftTDBinaryFeatures:
    def __init__(self, **options):
        self.steps = 0
    def step(self, features, reward):
        self.steps += 1
        open('PLACE', 'w').write(str(self.steps))
    def predict(self, features):
        return float(self.steps)
"""
    written(tmp_path / "swift_td.py", counting.replace("PLACE", str(tmp_path / "steps")))
    with peers.Peer(sys.executable, "swift", 3, stream(tmp_path)) as peer:
        assert peer.version == "7.0"
        assert peer.values.tolist() == [1.0, 2.0, 3.0]
        peer.learn()
        peer.learn()
        assert (tmp_path / "steps").read_text() == str(3 + 4 + 4)


def stream(folder):
    path = folder / "made.npz"
    np.savez(path, X=np.arange(8).reshape(4, 2), rewards=np.ones(3), n=8, step_size=0.1, trace_decay=0.9, discount=0.99)
    return path
