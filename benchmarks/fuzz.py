"""Damaged files through the readers: each is read, or refused in the documented way.

python benchmarks/fuzz.py svmlight|model [--runs N] [--seed S] [--first I] [--save FOLDER]

Anything else is a failure: another exception, a message of several lines, a crash, 2 s of CPU time
for one input, or 128 MB of memory.  Input number I of a seed is always the same bytes; those that
fail are saved.
"""

from __future__ import annotations

import argparse
import io
import mmap
import os
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CPU_SECONDS, BLOCKED_SECONDS, MEMORY = 2.0, 60, 1 << 27
MOST_FAILURES = 20
NUMBER = re.compile(rb"[-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?")
NASTY = (
    *b"nan inf -inf -0 0 -1 1e999 -1e309 1e-999 0x10 1_0 1e 1e+ . e5 1,2 1,5 +-1 007 1.".split(),
    *b"2147483647 2147483648 4294967296 9223372036854775808 18446744073709551616 1e400".split(),
    *b"9007199254740993 1.7976931348623159e308 5e-324 2.4703282292062327e-324".split(),
    *b"null true false [] {} [[ ]] }} \" \\ \\u0000 NaN -Infinity qid:3 qid: 1:1 : # #x".split(),
    *(b" ", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\x1f\x8b", b"PK\3\4"),
    *(b"9" * 40, b"1" * 19, b"1" * 20, b"0." + b"0" * 350 + b"1", b"1" + b"0" * 310, b"." * 99),
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """What is given damaged inputs: how to load one, and the one exception it may raise."""

    load: Callable[[bytes], Any]
    refusal: type[Exception]
    seeds: tuple[bytes, ...]
    seal: Callable[[bytes], bytes] | None = None  # makes lengths and checksums fit again


def damaged(target: Target, seed: int, number: int) -> bytes:
    """Return an input, the same for the same numbers."""
    rng = random.Random(seed << 40 | number)
    content = rng.choice(target.seeds)
    for _ in range(rng.randint(1, 4)):
        content = rng.choice(DAMAGES)(rng, content, target.seeds)
    if target.seal and rng.random() < 0.9:
        content = target.seal(content)
    return content


def flip(rng: random.Random, content: bytes, seeds: tuple[bytes, ...]) -> bytes:
    k = rng.randrange(len(content) + 1)
    return content[:k] + bytes([rng.randrange(256)]) + content[k + 1 :]


def insert(rng: random.Random, content: bytes, seeds: tuple[bytes, ...]) -> bytes:
    k = rng.randrange(len(content) + 1)
    return content[:k] + rng.choice(NASTY) + content[k:]


def replace_number(rng: random.Random, content: bytes, seeds: tuple[bytes, ...]) -> bytes:
    found = NUMBER.search(content, rng.randrange(len(content) + 1))
    if found is None:
        return insert(rng, content, seeds)
    return content[: found.start()] + rng.choice(NASTY) + content[found.end() :]


def remove(rng: random.Random, content: bytes, seeds: tuple[bytes, ...]) -> bytes:
    k = rng.randrange(len(content) + 1)
    return content[:k] + content[k + rng.choice((1, 2, 8, 40)) :]


def cut(rng: random.Random, content: bytes, seeds: tuple[bytes, ...]) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def splice(rng: random.Random, content: bytes, seeds: tuple[bytes, ...]) -> bytes:
    other = rng.choice(seeds)
    k, j = rng.randrange(len(content) + 1), rng.randrange(len(other))
    return content[:k] + other[j : j + rng.choice((5, 20, 1000))] + content[k:]


def repeat(rng: random.Random, content: bytes, seeds: tuple[bytes, ...]) -> bytes:
    k = rng.randrange(len(content) + 1)
    piece = content[k : k + rng.choice((1, 1, 4, 30))]
    return content[:k] + piece * rng.choice((2, 20, 200)) + content[k:]


DAMAGES = (flip, flip, insert, replace_number, replace_number, remove, cut, splice, repeat)


def is_read(target: Target, content: bytes) -> bool:
    """Tell whether an input is read; False if it is refused as documented."""
    try:
        target.load(content)
    except target.refusal as error:
        if "\n" in str(error):
            raise AssertionError(f"a message of several lines: {error}") from error
        return False
    return True


def watch(target: Target, seed: int, numbers: range, save: Path) -> tuple[int, int, list[int]]:
    """Give inputs to a process of their own; return how many were read and refused, and which fail.

    A process that fails is succeeded by another, which begins with the next input.
    """
    for content in target.seeds:
        assert is_read(target, content), "a seed is refused"
    board = memoryview(mmap.mmap(-1, 24)).cast("Q")  # current number, how many read and refused
    failed: list[int] = []
    while len(numbers) and len(failed) < MOST_FAILURES:
        sys.stdout.flush()
        if (process := os.fork()) == 0:
            _work(target, seed, numbers, board)
        _, status = os.waitpid(process, 0)
        if status == 0:
            break
        number, code = board[0], os.waitstatus_to_exitcode(status)
        save.mkdir(parents=True, exist_ok=True)
        path = save / f"{seed}-{number}"
        path.write_bytes(damaged(target, seed, number))
        print(f"FAILED {path}: {signal.Signals(-code).name if code < 0 else 'see above'}")
        failed.append(number)
        numbers = range(number + 1, numbers.stop)
    return board[1], board[2], failed


def _work(target: Target, seed: int, numbers: range, board: memoryview) -> None:
    """Go through the inputs and end the process; timers and limits end it before."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for number in numbers:
            board[0] = number
            content = damaged(target, seed, number)
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            signal.alarm(BLOCKED_SECONDS)
            board[1 if is_read(target, content) else 2] += 1
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def svmlight() -> Target:
    """Rows of text, with all that the format allows."""
    import numpy as np

    from zerogap.readers import DataError, read

    def load(content: bytes) -> None:
        sys.stdin = SimpleNamespace(buffer=io.BytesIO(content))  # type: ignore[assignment]
        data = read("-", labelled=False)
        matrix = data.X
        matrix.check_format(full_check=True)
        assert np.isfinite(matrix.data).all()
        assert data.y is None or (len(data.y) == matrix.shape[0] and np.isfinite(data.y).all())

    rng = random.Random(0)
    rows = [
        f"{rng.choice([-1, 1])} "
        + " ".join(f"{j}:{rng.random():.{rng.randint(1, 18)}g}" for j in range(1, 40, 3))
        for _ in range(12)
    ]
    seeds = (
        "\n".join(rows) + "\n",
        "# head\r\n+1 qid:1 1:0.5 7:-2e-3 # tail\r\n\r\n-1 qid:2 2:1\r\n",
        "1:1 2:2\n3:1e5\n",
        "2.5 1:12345678901234567890.5 1000000:1e-320\n0\n",
    )
    return Target(load, DataError, tuple(text.encode() for text in seeds))


def model() -> Target:
    """Model files of a binary, a multiclass and a regression model."""
    import numpy as np

    import zerogap as zg
    from zerogap.model_io import ModelFileError, loads, save
    from zerogap.readers import Category, Encoder, Number

    X = np.random.default_rng(0).standard_normal((30, 3))
    encoder = Encoder(3, (Number("a"), Category("b", ("p", "q"))), "y", True)
    fits = (
        (zg.LinearClassifier("hinge", random_state=0), np.sign(X[:, 0]), None),
        (zg.LinearClassifier("softmax", random_state=0), np.array(list("abc" * 10)), encoder),
        (zg.LinearRegressor("huber", solver=zg.SDCA(), random_state=0), X[:, 0], None),
    )
    seeds = []
    with tempfile.TemporaryDirectory() as folder:
        for estimator, y, columns in fits:
            path = Path(folder, "model")
            save(estimator.fit(X, y), path, encoder=columns)
            seeds.append(path.read_bytes())

    def seal(content: bytes) -> bytes:
        body = content[16:-4]
        end = body.rfind(b"]]}") + 3  # of the header: a single brace may be part of an array
        length = struct.pack("<I", end)
        content = content[:12] + length + body
        return content + struct.pack("<I", zlib.crc32(content))

    def load(content: bytes) -> None:
        file = loads(content)
        file.model.predict(np.zeros((1, file.model.n_features_in_)))

    return Target(load, ModelFileError, tuple(seeds), seal)


TARGETS = {"svmlight": svmlight, "model": model}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"))
    options = parser.parse_args()
    start = time.perf_counter()
    numbers = range(options.first, options.first + options.runs)
    read, refused, failed = watch(TARGETS[options.target](), options.seed, numbers, options.save)
    seconds = time.perf_counter() - start
    print(
        f"{options.target}: {read} read, {refused} refused, {len(failed)} failed, {seconds:.0f} s"
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
