"""Begin a new method: `python -m tools.new_method NAME` writes its rule, definition, row, page and test, with the gaps marked.

What it writes is TD(λ) with accumulating traces, under another name. So everything runs at once, and `tests/test_catalog.py` fails
with a message for each gap. CONTRIBUTING.md has the steps.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from trueonline import catalog

ROOT = Path(__file__).parent.parent
GAP = "GAP"
PAGE_GAP = r"<!--\s.{0,90}|\b(?:[A-Z]{3,} ){2,}[A-Z]{3,}"  # a comment of the template, or its words in capitals
LAST_ROW = re.compile(r'.*, "prediction"\),\n.*?\n    \),\n', re.DOTALL)  # up to the end of the last row of the group

RULE = '''"""{GAP}: the name of the method (authors and year): what it does, in one sentence.

{GAP}: the claim, with the equation or algorithm of the publication, and every departure from it.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


# {GAP}: the update, in the order of the pseudo-code. This one is TD(λ). The arguments name what the rule needs of a transition
# (`core/transition.py`). `core/memory/__init__.py` lists the operations on a memory.
@kernel
def {name}(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)  # V ← wᵀφ and V' ← wᵀφ'
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)  # e ← γλe …
    imprint(memory, x, 1.0, 0.0)  # … + φ
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next
'''
DEFINITION = '''"""{GAP}: the name of the method, by its definition."""

from __future__ import annotations

import numpy as np

from trueonline.forward.base import Definition


class {definition}(Definition):
    """{GAP}: what the method must equal after every transition, in one equation.

    w_t = w_0 + Σ_{{j=0}}^{{t−1}} α_jδ_j e_j, with e_j = Σ_{{i=0}}^{{j}} (∏_{{m=i+1}}^{{j}} γ_mλ_m) φ_i
    """

    # {GAP}: the weights from the history (`forward/base.py`), slow and obvious. This is TD(λ).
    def _weights_now(self) -> np.ndarray:
        terms = (self.alphas[j] * self.deltas[j] * self._trace_at(j) for j in range(len(self.deltas)))
        return sum(terms, self._first_weights.copy())

    def _weights_at_end(self) -> np.ndarray:
        return self._weights

    def _trace_at(self, j: int) -> np.ndarray:
        decays = self._decays()
        return sum((np.prod(decays[i + 1 : j + 1]) * self.x[i] for i in range(j + 1)), np.zeros(self.n_features))

    @property
    def trace(self) -> np.ndarray:
        return self._trace_at(len(self.x) - 1)
'''
ROW = """    Method(
        # {GAP}: {name} needs its name in plots, its group, and what `Method` documents: memory, trace, whether it is swept, …
        *("{name}", "{name}", "prediction"),
        learner="{learner}",
        definition="forward.{name}:{definition}",
        rule="{name}",
    ),
"""
TEST = '''"""Worked numbers of {learner}. `tests/test_catalog.py` compares it with its definition."""

import numpy as np

import trueonline as to


def test_two_steps_by_hand():
    """{GAP}: the numbers of a few steps, from the equations of the publication and by hand."""
    learner = to.{learner}(n_features=2, step_size=0.5, trace_decay=0.5, discount=1.0)
    learner.start(0)
    learner.update(1.0, 1)
    learner.update(2.0, None)
    np.testing.assert_allclose(learner.weights, [1.0, 1.0])
'''


def parts(row: catalog.Method) -> dict[str, str]:
    """The files of a method, by what they are."""
    files = {"page": f"docs/methods/{row.page}", "test": f"tests/methods/test_{row.name}.py"}
    for part in ("rule", "definition"):
        value = getattr(row, part)
        files[part] = f"src/trueonline/{value.partition(':')[0].replace('.', '/')}.py" if value else ""
    return files


def gaps(row: catalog.Method, root: Path = ROOT) -> list[str]:
    """What is left to do for a method: file, line and what belongs there.

    Parameters
    ----------
    row : Method
        The row of the catalogue.
    root : Path, optional
        The folder of the checkout.

    Returns
    -------
    list of str
        Empty if there is no gap.
    """
    found = []
    for file in sorted({*parts(row).values(), "src/trueonline/catalog.py"}):
        path = root / file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        mark = rf"{GAP}: {row.name}.*" if path.stem == "catalog" else PAGE_GAP if path.suffix == ".md" else rf"{GAP}:.*"
        for gap in re.finditer(mark, text):
            line = text.count("\n", 0, gap.start()) + 1
            found.append(f"{file}:{line}: {' '.join(gap[0].split())}")
    return found


def main() -> None:
    """Write the files, and say what is left to do."""
    parser = argparse.ArgumentParser(prog="python -m tools.new_method", description="Begin a new method.")
    parser.add_argument("name", metavar="NAME", help="the name in commands, in small letters, such as clipped_td")
    name = parser.parse_args().name
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        parser.error(f"NAME must be small letters, digits and single underscores, got {name!r}")
    learner = re.sub(r"Td(?=[A-Z]|$)", "TD", "".join(word.capitalize() for word in name.split("_")))
    row = catalog.Method(
        name, name, "prediction", learner, f"forward.{name}:{learner}Sum", f"{name}.md", f"methods.{name}:{name}"
    )
    files = parts(row)
    taken = [file for file in files.values() if file and (ROOT / file).exists()]
    if name in catalog.METHODS or taken:
        parser.error(
            f"{name} is taken: {', '.join(taken) or 'the catalogue has a row of this name'}; choose another name"
        )
    words = {"GAP": GAP, "name": name, "learner": learner, "definition": f"{learner}Sum"}
    for part, text in {"rule": RULE, "definition": DEFINITION, "test": TEST}.items():
        (ROOT / files[part]).write_text(text.format(**words), encoding="utf-8")
    page = (ROOT / "docs/methods/_template.md").read_text(encoding="utf-8")
    for word, value in {"CLASS": learner, "NAME": name, "DEFINITION": f"{learner}Sum", "FILE": name}.items():
        page = re.sub(rf"\b{word}\b", value, page)
    (ROOT / files["page"]).write_text(page, encoding="utf-8")
    rows = ROOT / "src/trueonline/catalog.py"
    text = rows.read_text(encoding="utf-8")
    before = LAST_ROW.match(text)
    assert before is not None
    rows.write_text(before[0] + ROW.format(**words) + text[before.end() :], encoding="utf-8")
    subprocess.run([sys.executable, "-m", "tools.generated"], cwd=ROOT, check=True)  # with the new row
    print("\n".join(["Fill the gaps, and run `python -m tools.generated` once more:", *gaps(row)]))


if __name__ == "__main__":
    main()
