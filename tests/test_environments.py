"""Fits in threads, forked and spawned processes, and without assertions."""

import subprocess
import sys

import pytest

FITS = """
import multiprocessing
import threading

import zerogap as zg

X, y, _ = zg.datasets.make_simulated(100, 3, random_state=0)


def fit(number):
    loss = ("hinge", "logistic")[number % 2]
    model = zg.LinearClassifier(loss, tol=1e-6, random_state=0).fit(X, y)
    return model.certificate_.stop_reason, model.coef_.tobytes()


if __name__ == "__main__":
    found = [None] * 64
    threads = [
        threading.Thread(target=lambda k=k: found.__setitem__(k, fit(k))) for k in range(64)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            found += pool.map(fit, range(4))
    expected = [fit(0), fit(1)]
    same = all(answer == expected[k % 2] for k, answer in enumerate(found))
    print(len(found), same, {reason for reason, _ in found})
"""


@pytest.mark.posix
def test_fits_at_once_in_threads_and_processes_without_assertions(tmp_path):
    script = tmp_path / "fits.py"
    script.write_text(FITS)
    command = [sys.executable, "-O", str(script)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert run.stdout == "72 True {'converged'}\n", run.stdout + run.stderr
