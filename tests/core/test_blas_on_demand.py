"""Kernels import SciPy when they need linear algebra, and not before."""

import subprocess
import sys

PROGRAM = """
import sys
import numba, numpy as np
import trueonline as to

learner = to.TrueOnlineTD(2, step_size=0.1, trace_decay=0.9, discount=0.9)
learner.start([1.0, 0.0])
learner.update(1.0, [0.0, 1.0])
assert "scipy.linalg" not in sys.modules
product = numba.njit(lambda a: a @ a + np.linalg.inv(a) @ a)
np.testing.assert_array_equal(product(np.eye(2)), 2.0 * np.eye(2))
assert "scipy.linalg" in sys.modules
"""


def test_a_first_update_does_not_import_scipy_and_kernels_may_multiply_matrices():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
