"""A short run of the benchmark that kills commands, and takes disk, memory and rights from them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"


@pytest.mark.posix
def test_disturbed_commands_lose_nothing():
    command = [sys.executable, str(SCRIPT), "--count", "42", "--jobs", "1", "--seed", "7"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^42 commands, 0 lost; ", run.stdout, re.MULTILINE)
