"""Damaged files are read or refused; and the watcher notices whatever else happens."""

import subprocess
import sys
from pathlib import Path

import crafted
import fuzz
import pytest

BROKEN = """
import os, sys, time
from pathlib import Path
import fuzz

def load(content):
    if b"x" in content and sys.argv[1] == "raise":
        raise KeyError(content)
    if b"x" in content and sys.argv[1] == "lines":
        raise ValueError("a\\nb")
    if b"x" in content and sys.argv[1] == "crash":
        os.abort()
    if b"x" in content and sys.argv[1] == "hang":
        while True:
            pass
    if b"x" in content and sys.argv[1] == "memory":
        bytearray(1 << 30)
    if b"x" in content and sys.argv[1] == "sleep":
        time.sleep(3600)
    if len(content) < 5:
        raise ValueError("short")

fuzz.CPU_SECONDS = 0.2
if sys.argv[1] == "sleep":
    fuzz.MOST_LOOKS, fuzz.MOST_FAILURES = 40, 1
target = fuzz.Target(load, ValueError, (b"hello, world", b"1 2 3 4 5"))
read, refused, failed = fuzz.watch(target, 0, range(300), Path(sys.argv[2]))
print(read, refused, len(failed))
"""


RUNS = dict.fromkeys(fuzz.TARGETS, 150) | {"svmlight": 2000, "model": 300}


@pytest.mark.filterwarnings("ignore")  # what a damaged table is warned of
@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_damaged_files_are_read_or_refused(name):
    target, runs = fuzz.TARGETS[name](), RUNS[name]
    assert all(fuzz.is_read(target, content) for content in target.seeds)
    read = sum(fuzz.is_read(target, fuzz.damaged(target, 1, number)) for number in range(runs))
    assert read < runs // 2


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("name", crafted.MAKERS)
def test_crafted_files_are_read_or_refused(name):
    target = crafted.crafted(name)
    content = [fuzz.damaged(target, 1, number) for number in range(40)]
    assert content == [fuzz.damaged(target, 1, number) for number in range(40)]
    read = sum(fuzz.is_read(target, piece) for piece in content)
    assert read < 40 or name == "proof"  # of which the verifier says "false"


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_that_a_refusal_took_is_seen():
    def load(content):
        bytearray(b"x") * int(content)  # all of it is written to
        raise ValueError("refused")

    load = crafted.sparing(fuzz.Target(load, ValueError, ()))
    with pytest.raises(ValueError, match="refused"):
        load(b"1000")
    with pytest.raises(AssertionError, match="bytes for 9"):
        load(b"100000000")


def test_inputs_are_the_same_for_the_same_numbers():
    target = fuzz.Target(print, ValueError, (b"1 1:2 2:3\n", b"-1 4:5\n"))
    inputs = [fuzz.damaged(target, 7, number) for number in range(500)]
    assert inputs == [fuzz.damaged(target, 7, number) for number in range(500)]
    assert len(set(inputs)) > 400


@pytest.mark.parametrize("fault", ["raise", "lines", "crash", "hang", "sleep", "memory"])
def test_watcher_notices(tmp_path, fault):
    command = [sys.executable, "-c", BROKEN, fault, str(tmp_path)]
    folder = Path(fuzz.__file__).parent
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    read, refused, failed = map(int, done.stdout.splitlines()[-1].split())
    saved = list(tmp_path.iterdir())
    assert len(saved) == failed > 0
    assert all(b"x" in path.read_bytes() for path in saved)
    assert read > 0
    assert refused > 0
