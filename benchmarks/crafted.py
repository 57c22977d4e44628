"""Files made to harm, with checksums that are right: each is read, or refused at once.

    python benchmarks/crafted.py TARGET... | all [--runs N | --minutes M] [--seed S] [--first I]
                                 [--save FOLDER]

Targets are model, checkpoint, proof, store and npz.  Each file is a good one in whose header some
values became others: sizes and counts beyond all bounds, other types, texts and lists that are long
or deep, keys that are twice or not there; and in whose arrays some numbers did.  Whatever fuzz.py
calls a failure is one, and so is more than 1 s, or a refusal that takes more memory than twice the
file's size and 16 MB.  Input number I of a seed is always the same bytes.
"""

from __future__ import annotations

import copy
import io
import json
import random
import re
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fuzz
import numpy as np

import zerogap as zg
from zerogap.io import container
from zerogap.problem.multiclass import MulticlassProblem
from zerogap.solvers.checkpoint import CheckpointError
from zerogap.store import manifest

SECONDS = 1.0  # of processor time, for one file
SECONDS_OF_A_RUN = 3.0  # that goes on from a checkpoint, and may load another method's code
ROOM = 1 << 24  # bytes that a refusal may take besides twice the file's size
OUTPUTS: tuple[dict[str, Any], ...] = ({}, {"output": "average"}, {"output": "random"})
SOLVERS = (
    *((name, how) for name in ("sdca", "asdca", "sgd") for how in OUTPUTS),
    *((name, how) for name in ("pegasos", "gd", "bcfw") for how in OUTPUTS[:2]),
    *((name, OUTPUTS[0]) for name in ("auto", "newton", "interior-point")),
)
LONGEST = 1 << 19  # bytes of a header: JSON becomes up to 25 times as many
MOST_COPIES = 10_000  # of one value
NASTY: tuple[Any, ...] = (
    *(0, 1, -1, 2, 1000, 2**31 - 1, 2**31, 2**32, 2**40, 2**53 + 1, 2**62, 2**63, 2**64, 10**50),
    *(0.0, -0.0, 0.5, 5e-324, 1e-300, 1e300, 1.7976931348623157e308, -1e300, True, False, None),
    *("", "a", "inf", "\0", "\n", "\x1b[31m", "../../x", "/etc/passwd", "<f8", "|O", "hinge"),
    *("9" * 99, "x" * 9999, [], {}, [[]], [None], {"": {}}),
    *({"float": "nan"}, {"float": "inf"}, {"float": "-inf"}),
)  # fmt: skip
NUMBERS = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1e300, -1e300, np.inf, -np.inf, np.nan)
DEEP = re.compile(rb'"deep ([0-9]+)"')
DTYPES = ("f8", "f4", "f2", "i8", "i4", "u8", "u1", "?", "U1", "U9", "S4", "c16", "V8")


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each list or object in a tree with each of its keys."""
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key
        if isinstance(value, dict | list):
            yield from places(value)


def change(rng: random.Random, tree: Any) -> None:
    """Change one value in a tree of JSON."""
    if not (all_places := list(places(tree))):
        return
    owner, key = rng.choice(all_places)
    kind = rng.randrange(7)
    if kind <= 2:
        owner[key] = copy.deepcopy(rng.choice(NASTY))
    elif kind == 3:
        del owner[key]
    elif kind == 4:  # another value of the same tree
        other, name = rng.choice(all_places)
        owner[key] = copy.deepcopy(other.get(name) if isinstance(other, dict) else None)
    elif kind == 5:
        owner[key] = f"deep {int(10 ** rng.uniform(0, 5))}"
    elif (size := len(json.dumps(tree))) < MOST_COPIES:  # which grows once
        count = int(10 ** rng.uniform(0, np.log10(min(MOST_COPIES, LONGEST / size))))
        if isinstance(owner, list):
            owner[key:key] = [owner[key]] * count
        else:
            owner.update({f"{key}{k}": owner[key] for k in range(count)})


def change_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Return an array of which a number, the type or the shape is another one."""
    kind = rng.randrange(4)
    if kind == 0 and array.size and array.dtype.kind in "fiu":
        array = array.copy()
        with np.errstate(all="ignore"):
            array.reshape(-1)[rng.randrange(array.size)] = np.float64(rng.choice(NUMBERS)).astype(
                array.dtype
            )
        return array
    if kind == 1:
        sizes = (0, 1, 2, 3, 40, 1000) if array.ndim < 3 else (0, 1, 2, 3, 20)
        return np.resize(array, [rng.choice(sizes) for _ in array.shape])
    if kind == 2:
        return array.reshape(rng.choice(((-1,), (1, -1), (-1, 1), (1, 1, -1))))
    with np.errstate(all="ignore"):
        try:
            return array.astype(rng.choice(DTYPES))
        except (TypeError, ValueError):
            return array.reshape(-1)


def text_of(tree: Any) -> bytes:
    """Return JSON, in which "deep 3" becomes [[[]]]; of large trees, the beginning."""
    text = json.dumps(tree).encode()[:LONGEST]
    return DEEP.sub(lambda found: b"[" * int(found[1]) + b"]" * int(found[1]), text, count=3)


def container_of(rng: random.Random, seed: bytes) -> bytes:
    """Return a model or checkpoint with other values and a right checksum."""
    header, arrays = container.unpack(seed)
    header = container._tag_infinities(header)
    for name in rng.sample(sorted(arrays), min(len(arrays), rng.choice((0, 0, 1, 2)))):
        arrays[name] = change_array(rng, arrays[name])
    header["arrays"] = [[name, a.dtype.str, list(a.shape)] for name, a in arrays.items()]
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        change(rng, header)
    text = text_of(header)
    body = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays.values())
    whole = seed[:12] + struct.pack("<I", len(text)) + text + body
    return whole + struct.pack("<I", zlib.crc32(whole))


def arrays_of(rng: random.Random, seed: bytes) -> bytes:
    """Return an npz file, or a proof, with other values."""
    with np.load(io.BytesIO(seed)) as file:
        arrays = dict(file)
    for name in rng.sample(sorted(arrays), rng.choice((1, 1, 2))):
        if name == "header":
            header = json.loads(arrays[name].tobytes())
            change(rng, header)
            arrays[name] = np.frombuffer(text_of(header), dtype=np.uint8)
        else:
            arrays[name] = change_array(rng, arrays[name])
    if rng.random() < 0.1:
        del arrays[rng.choice(sorted(arrays))]
    file = io.BytesIO()
    (np.savez if rng.random() < 0.5 else np.savez_compressed)(file, **arrays)
    return file.getvalue()


def manifest_of(rng: random.Random, seed: bytes) -> bytes:
    """Return the manifest of a store with other values and a right fingerprint."""
    content = json.loads(seed)
    for _ in range(rng.choice((1, 1, 2, 3))):
        change(rng, content)
    content["fingerprint"] = manifest._digest(content)
    return text_of(content)


MAKERS: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "model": container_of,
    "checkpoint": container_of,
    "proof": arrays_of,
    "store": manifest_of,
    "npz": arrays_of,
}


def in_memory(field: str) -> int:
    """Return what the system says of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def sparing(target: fuzz.Target) -> Callable[[bytes], Any]:
    """Return how a target loads files, where a refusal may not take much memory."""

    def load(content: bytes) -> Any:
        before = in_memory("RssAnon")
        Path("/proc/self/clear_refs").write_text("5")  # the most so far is forgotten
        try:
            return target.load(content)
        except target.refusal:
            taken = in_memory("VmHWM") - in_memory("RssFile") - before  # without code of libraries
            assert taken <= 2 * len(content) + ROOM, f"{taken} bytes for {len(content)}"
            raise

    return load


def checkpoints() -> fuzz.Target:
    """Return checkpoints of all solvers, each to go on with in its own run."""
    X, y, _ = zg.datasets.make_simulated(40, 3, random_state=0)
    path, runs = Path(tempfile.mkdtemp(), "run"), {}
    classes = np.arange(40) % 3
    for name, how in SOLVERS:
        many = name == "bcfw"
        loss, targets = ("multiclass-hinge", classes) if many else ("hinge", y)
        if name in ("newton", "asdca", "gd"):
            loss = "logistic"
        problem = (MulticlassProblem if many else zg.Problem)(X, targets, loss, 0.1)
        solver = zg.solvers.SOLVERS[name](**how)
        for epochs in (1, 3):
            path.unlink(missing_ok=True)
            given = {"tol": 0, "random_state": 0, "checkpoint": path}
            zg.solve(problem, solver, max_epochs=epochs, **given)
            content = path.read_bytes()
            runs[container.unpack(content)[0]["run"]] = problem, solver, given, content

    def load(content: bytes) -> None:
        path.write_bytes(content)
        known = [run for identity, run in runs.items() if identity.encode() in content]
        problem, solver, given, _ = (known or list(runs.values()))[0]
        result = zg.solve(problem, solver, max_epochs=6, **given)
        claim = result.certificate
        if claim.gap < np.inf:
            truth = problem.primal(result.w, result.b)
            assert abs(claim.primal - truth) <= 1e-12 * truth, "a certificate is not of its model"

    return fuzz.Target(load, CheckpointError, tuple(run[-1] for run in runs.values()))


def crafted(name: str) -> fuzz.Target:
    """Return a target of fuzz.py that is given crafted files in the place of damaged ones."""
    target = checkpoints() if name == "checkpoint" else fuzz.TARGETS[name]()
    fuzz.CPU_SECONDS = SECONDS_OF_A_RUN if name == "checkpoint" else SECONDS
    make = MAKERS[name]

    def craft(rng: random.Random) -> bytes:
        return make(rng, rng.choice(target.seeds))

    return replace(target, load=sparing(target), craft=craft)


def main() -> None:
    fuzz.main(__doc__ or "", {name: lambda name=name: crafted(name) for name in MAKERS})


if __name__ == "__main__":
    sys.exit(main())
