"""A short run of the benchmark that kills workers at random moments."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "chaos.py"


@pytest.mark.posix
@pytest.mark.timeout(1200)  # half a minute, but not on a busy machine
def test_fit_whose_workers_are_killed_ends_certified():
    command = [sys.executable, str(SCRIPT), "--kills", "2"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.search(
        r"^(\d+) fits tried, (\d+) workers killed, .* 0 lost; ", run.stdout, re.MULTILINE
    )
    assert found is not None
    assert int(found[1]) >= 1
    assert int(found[2]) >= 2
