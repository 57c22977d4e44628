"""Damaged files through the readers: each is read, or refused in the documented way.

python benchmarks/fuzz.py TARGET... | all [--runs N | --minutes M] [--seed S] [--first I]
                          [--save FOLDER]

Targets are the formats of data files (svmlight, csv, jsonl, npz, xlsx, parquet), and model, proof,
checkpoint and store, whose checksums are made to fit again after the damage.  Anything else is a
failure: another exception, a message of several lines, a crash, 2 s of CPU time for one input, or
128 MB of memory.  Input number I of a seed is always the same bytes; those that fail are saved.
"""

from __future__ import annotations

import argparse
import io
import math
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
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

CPU_SECONDS, MEMORY = 2.0, 1 << 27
LOOK_SECONDS, MOST_LOOKS = 0.05, 1200  # a minute at least: more on a busy machine
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
    craft: Callable[[random.Random], bytes] | None = None  # makes an input, if it is not damage


def damaged(target: Target, seed: int, number: int) -> bytes:
    """Return an input, the same for the same numbers."""
    rng = random.Random(seed << 40 | number)
    if target.craft:
        return target.craft(rng)
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


def watch(
    target: Target, seed: int, numbers: range, save: Path, end: float = math.inf
) -> tuple[int, int, list[int]]:
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
            _work(target, seed, numbers, board, end)
        if (status := _wait(process, board)) == 0:
            break
        number, code = board[0], os.waitstatus_to_exitcode(status)
        (path := save / f"{seed}-{number}").parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(damaged(target, seed, number))
        print(f"FAILED {path}: {signal.Signals(-code).name if code < 0 else 'see above'}")
        failed.append(number)
        numbers = range(number + 1, numbers.stop)
    return board[1], board[2], failed


def _wait(process: int, board: memoryview) -> int:
    """Return how a process ended, by SIGALRM where one input kept it for too many looks.

    Looks are counted instead of seconds, because all may be stopped for long, as by Ctrl-Z or on a
    sleeping machine.
    """
    number, looks = board[0], 0
    while (found := os.waitpid(process, os.WNOHANG))[0] == 0:
        number, looks = board[0], looks + 1 if board[0] == number else 0
        if looks == MOST_LOOKS:
            os.kill(process, signal.SIGALRM)
        time.sleep(LOOK_SECONDS)
    return found[1]


def _work(target: Target, seed: int, numbers: range, board: memoryview, end: float) -> None:
    """Go through the inputs and end the process; timers and limits end it before."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for number in numbers:
            if time.monotonic() > end:
                break
            board[0] = number
            content = damaged(target, seed, number)
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            board[1 if is_read(target, content) else 2] += 1
            signal.setitimer(signal.ITIMER_PROF, 0.0)  # making the next input does not count
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def table(suffix: str, seeds: tuple[bytes, ...]) -> Target:
    """Files of a format, read as training data without targets of a certain kind."""
    import numpy as np
    from scipy import sparse

    from zerogap.readers import DataError, TableOptions, read

    folder = tempfile.mkdtemp()
    path = Path(folder, f"data.{suffix}")
    options = TableOptions(impute="median", dates=True)
    for name, text in {"a.csv": "a,y\n1,2\n3,4\n", "a.svm": "1 1:2\n-1 2:1\n"}.items():
        Path(folder, name).write_text(text)  # as damaged files may look
        read(Path(folder, name))  # loads pyarrow and Numba before memory is limited

    def load(content: bytes) -> None:
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = read(path, labelled=suffix != "svm", options=options)
        matrix = data.X
        if sparse.issparse(matrix):
            matrix.check_format(full_check=True)
            matrix = matrix.data
        assert np.isfinite(matrix).all()
        assert data.y is None or len(data.y) == data.X.shape[0]

    return Target(load, DataError, seeds)


def svmlight() -> Target:
    """Rows of text, with all that the format allows."""
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
    return table("svm", tuple(text.encode() for text in seeds))


def csv() -> Target:
    """Tables of text: separators, quotes, dates, categories, money."""
    seeds = (
        "a,b,y\n" + "\n".join(f"{k},{k * 0.37:.3g},{k % 2}" for k in range(20)) + "\n",
        'a;b;y\n1,5;"x;y";01/02/2020\n2,5;z;03/04/2021\n-3,25;"q ""r""";05/06/2022\n',
        "town\tprice\ty\nParis\t$1,037.50\t5%\nRome\t$12.00\t17%\nBonn\t$3.00\t9%\n",
        "id,when,y\n1,2020-01-31T10:00:00,yes\n2,2021-02-28T11:30:00,no\n3,,yes\n",
    )
    from zerogap.readers import DataError, large

    target, usual = table("csv", tuple(text.encode() for text in seeds)), large.LEAST

    def load(content: bytes) -> None:
        """Read it as large files are, by compiled code, and as others."""
        large.LEAST = 0
        first = is_read(target, content)
        large.LEAST = usual
        assert is_read(target, content) == first, "compiled code answers otherwise"
        if not first:
            raise DataError("refused, twice")

    return replace(target, load=load)


def jsonl() -> Target:
    """Lines of JSON."""
    rows = [f'{{"a": {k}, "d": null, "y": "{"xyz"[k % 3]}"}}' for k in range(6)]
    answers = ("false", "true")
    plain = [f'{{"a": {k}, "b": {k / 7:.4f}, "y": {answers[k % 2]}}}' for k in range(9)]
    return table("jsonl", tuple("\n".join(lines).encode() for lines in (rows, plain)))


def npz() -> Target:
    """Arrays, dense and sparse, and packed ones."""
    import numpy as np

    X, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2
    csr = {"data": np.ones(3), "indices": np.array([0, 1, 0]), "indptr": np.array([0, 1, 2, 3])}
    seeds = []
    for write, arrays in (
        (np.savez, {"X": X, "y": y}),
        (np.savez, {**csr, "shape": np.array([3, 2]), "format": np.array(b"csr"), "y": y[:3]}),
        (np.savez_compressed, {"X": X.astype(np.float32), "y": y}),
    ):
        file = io.BytesIO()
        write(file, **arrays)
        seeds.append(file.getvalue())
    return table("npz", tuple(seeds))


def xlsx() -> Target:
    """A spreadsheet with numbers, texts and dates, packed and not, so that damage reaches it."""
    import datetime
    import zipfile

    import openpyxl

    book = openpyxl.Workbook()
    for k in range(6):
        row = ["a", "b", "y"] if k == 0 else [datetime.date(2020, 1, k), "uv"[k % 2], k]
        book.active.append(row)
    packed, plain = io.BytesIO(), io.BytesIO()
    book.save(packed)
    with zipfile.ZipFile(packed) as source, zipfile.ZipFile(plain, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))

    def seal(content: bytes) -> bytes:
        """Make the checksums of the parts fit their damaged content."""
        for found in re.finditer(rb"PK\x03\x04", content):
            at = found.start()
            if at + 30 > len(content):
                continue
            size, name, extra = struct.unpack_from("<I4xHH", content, at + 18)
            body = content[at + 30 + name + extra :][:size]
            checksum, old = struct.pack("<I", zlib.crc32(body)), content[at + 14 : at + 18]
            content = content.replace(old, checksum)
        return content

    return replace(table("xlsx", (packed.getvalue(), plain.getvalue())), seal=seal)


def parquet() -> Target:
    """Columns of numbers and texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = pa.table({"a": [1.0, 2.0, None], "b": ["x", "y", "x"], "y": [1, 2, 3]})
    seeds = []
    for compression in ("none", "snappy"):
        file = io.BytesIO()
        pq.write_table(columns, file, compression=compression)
        seeds.append(file.getvalue())
    return table("parquet", tuple(seeds))


def sealed(content: bytes) -> bytes:
    """Return a file of ours with the length of its header and its checksum made to fit."""
    body = content[16:-4]
    end = body.rfind(b"]]}") + 3  # of the header: a single brace may be part of an array
    length = struct.pack("<I", end)
    content = content[:12] + length + body
    return content + struct.pack("<I", zlib.crc32(content))


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

    def load(content: bytes) -> None:
        file = loads(content)
        file.model.predict(np.zeros((1, file.model.n_features_in_)))

    return Target(load, ModelFileError, tuple(seeds), sealed)


def checkpoint() -> Target:
    """Checkpoints of runs that ended early."""
    import zerogap as zg
    from zerogap.solvers.checkpoint import CheckpointError

    X, y, _ = zg.datasets.make_simulated(40, 3, random_state=0)
    problem = zg.Problem(X, y, "hinge", lam=0.1, fit_intercept=True)
    path = Path(tempfile.mkdtemp(), "run")
    seeds = []
    for epochs in (2, 5):
        path.unlink(missing_ok=True)
        zg.solve(problem, zg.SDCA(), tol=0, max_epochs=epochs, random_state=0, checkpoint=path)
        seeds.append(path.read_bytes())

    def load(content: bytes) -> None:
        path.write_bytes(content)
        result = zg.solve(problem, zg.SDCA(), tol=0, max_epochs=6, random_state=0, checkpoint=path)
        claim, truth = result.certificate, problem.primal(result.w, result.b)
        fits = claim.gap == math.inf or abs(claim.primal - truth) <= 1e-12 * truth
        assert fits, "a certificate is not of its model"

    return Target(load, CheckpointError, tuple(seeds), sealed)


def proof() -> Target:
    """Proof files, given to the verifier: never an exception, and no damage is called true."""
    import numpy as np

    import zerogap as zg
    from zerogap.model_io import prove, save_proof

    X, y, _ = zg.datasets.make_simulated(20, 2, random_state=0)
    path = Path(tempfile.mkdtemp(), "model.proof")
    model = zg.LinearClassifier("hinge", random_state=0).fit(X, y)
    save_proof(prove(model, X, y), path)
    with np.load(path) as arrays:
        known = dict(arrays)

    def load(content: bytes) -> None:
        path.write_bytes(content)
        held = zg.verify.load(path)
        answer, _, _ = zg.verify.verify(held, X, y)
        same = held.keys() == known.keys() and all(
            held[name].dtype == value.dtype and np.array_equal(held[name], value)
            for name, value in known.items()
        )
        assert answer in ("true", "false", "undecided")
        assert same <= (answer == "true"), "a true proof is refused"

    return Target(load, ValueError, (path.read_bytes(),))


def store() -> Target:
    """Manifests of a store, whose blocks stay as they are."""
    import zerogap as zg
    from zerogap.store import StoreError, write_store
    from zerogap.store.manifest import NAME

    X, y, _ = zg.datasets.make_simulated(50, 3, random_state=0)
    folder = Path(tempfile.mkdtemp(), "store")
    write_store(folder, [(X, y)])
    path = folder / NAME

    def load(content: bytes) -> None:
        path.write_bytes(content)
        opened = zg.Store(folder)
        assert opened.n_samples > 0

    return Target(load, StoreError, (path.read_bytes(),))


TARGETS = {
    "svmlight": svmlight,
    "csv": csv,
    "jsonl": jsonl,
    "npz": npz,
    "xlsx": xlsx,
    "parquet": parquet,
    "model": model,
    "checkpoint": checkpoint,
    "proof": proof,
    "store": store,
}


def main(what: str, targets: dict[str, Callable[[], Target]]) -> None:
    """Give inputs to targets, and end with exit code 1 if any of them fails."""
    parser = argparse.ArgumentParser(description=what.splitlines()[0])
    parser.add_argument("target", choices=[*targets, "all"], nargs="+")
    parser.add_argument("--runs", type=int, default=100_000, help="inputs for each target")
    parser.add_argument("--minutes", type=float, default=math.inf, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"))
    options = parser.parse_args()
    names = list(targets) if "all" in options.target else options.target
    numbers = range(options.first, options.first + options.runs)
    bad = 0
    for name in names:
        target, start = targets[name](), time.monotonic()
        end = start + 60 * options.minutes / len(names)
        read, refused, failed = watch(target, options.seed, numbers, options.save / name, end)
        tried = read + refused + len(failed)
        print(
            f"{name}: {tried} tried, {read} read, {refused} refused, {len(failed)} lost, "
            f"{time.monotonic() - start:.0f} s; go on with --first {options.first + tried}"
        )
        bad += len(failed)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(__doc__ or "", TARGETS)
