"""The command `zerogap practical`, its data and its oracles."""

import builtins
import re
import struct
import sys

import numpy as np
import pytest

import zerogap as zg
from zerogap import cli
from zerogap.datasets import Mnist, load_mnist, mnist
from zerogap.lab.practical import Settings, UsageError, error_rate, run

testing = pytest.importorskip("typer.testing")

ROW = re.compile(r"^ +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) % +([\d.]+) %$", re.MULTILINE)
LINES = [
    "--dataset mini-mnist --opt gd --obj logistic",
    "--dataset mini-mnist --opt gd --obj logistic --init-lr 0.1",
    "--dataset mnist --opt gd --obj logistic",
    "--dataset mnist --opt sgd --obj logistic",
    "--dataset mnist --opt sgd --obj logistic --batch-size 64",
    "--dataset mnist --opt sgd --obj svm",
    "--dataset mnist --opt bcfw",
    "--dataset mnist --opt bcfw --mu 0.1",
]
REFUSED = {
    "--opt bcfw --fix-lr": "no learning rate",
    "--opt bcfw --init-lr 0.1": "no learning rate",
    "--opt bcfw --obj logistic": "softmax has no closed-form step",
    "--opt gd --batch-size 64": "uses all rows",
    "--opt gd --fix-lr": "only with --init-lr",
    "--opt sgd --batch-size 0": "--batch-size must be >= 1",
    "--opt sgd --batch-size 601": "--batch-size must be at most 600",
    "--opt sgd --init-lr 0": r"--init-lr must be in (0, 1 / mu = 1000]",
    "--opt sgd --init-lr 1001": r"--init-lr must be in (0, 1 / mu = 1000]",
    "--mu 0": "--mu must be a positive number",
    "--mu nan": "--mu must be a positive number",
    "--epochs 0": "--epochs must be at least 1",
    "--seed -1": "--seed must be >= 0",
    "--xp-name a/b": "--xp-name must be a plain file name",
}


def digits(rng, n):
    """Ten patterns of bright pixels on black, a third of them missing, and what they show."""
    labels = rng.integers(10, size=n).astype(np.uint8)
    patterns = 255 * (np.random.default_rng(7).random((10, 28, 28)) < 0.2)
    images = patterns[labels] * (rng.random((n, 28, 28)) < 0.67)
    return images.astype(np.uint8), labels


def idx(array):
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return header + array.tobytes()


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path_factory):
    """Keep the tests off the network and out of the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setitem(sys.modules, "pooch", None)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    return mnist.split_mnist(*digits(rng, 720), *digits(rng, 100), (600, 120, 100))


@pytest.fixture
def command(small, monkeypatch, tmp_path):
    """Run `zerogap practical` on the small data; pictures go to tmp_path."""
    asked = []

    def load(name):
        asked.append(name)
        return small

    monkeypatch.setattr("zerogap.lab.practical.load_mnist", load)

    def call(line):
        arguments = ["practical", "--out", str(tmp_path), *line.split()]
        outcome = testing.CliRunner().invoke(cli.make_app(), arguments)
        if outcome.exception and not isinstance(outcome.exception, SystemExit):
            raise outcome.exception
        return outcome

    call.asked = asked
    return call


@pytest.mark.parametrize("line", LINES)
def test_command_lines(line, command, tmp_path):
    outcome = command(f"{line} --seed 3 --epochs 4")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stderr == ""
    given = dict(zip(line.split()[::2], line.split()[1::2], strict=True))
    assert command.asked == [given["--dataset"]]
    rows = np.array(ROW.findall(outcome.stdout), dtype=float)
    assert rows[:, 0].tolist() == [1, 2, 3, 4]
    assert rows[-1, 2] < rows[0, 2]  # the objective
    assert np.all((rows[:, 3:] >= 0) & (rows[:, 3:] <= 100))
    assert rows[-1, 4] < 20  # chance is 90 %
    assert "600 rows for training, 120 for validation, 100 for test" in outcome.stdout
    assert re.search(r"^certificate  primal .*max_epochs after 4 epochs", outcome.stdout, re.M)
    share = float(re.search(r"\((\S+) % of primal", outcome.stdout)[1])
    explained = "keeps no dual point: one is made of the last scores" in outcome.stdout
    assert explained == (share > 10 and given["--opt"] != "bcfw")
    assert re.search(r"^test error   [\d.]+ %$", outcome.stdout, re.M)
    assert re.search(r"^total time   [\d.]+ s for updates, [\d.]+ s in all$", outcome.stdout, re.M)
    name = "_".join([given["--dataset"], given.get("--obj", "svm"), given["--opt"]])
    picture = tmp_path / f"{name}.png"
    assert f"picture      {picture.resolve()}" in outcome.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]


@pytest.mark.parametrize("line", REFUSED)
def test_refusals(line, command, tmp_path):
    outcome = command(line)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("zerogap practical: ")
    assert REFUSED[line] in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_options_reach_the_solver():
    assert Settings(opt="sgd").options(1000) == {
        "batch_size": 256,
        "step": 1e-2,
        "schedule": "sqrt",
    }
    fixed = Settings(opt="sgd", init_lr=0.5, fix_lr=True, batch_size=64).options(1000)
    assert fixed == {"batch_size": 64, "step": 0.5, "schedule": "constant"}
    assert Settings(opt="bcfw").options(100) == {"batch_size": 100}
    assert Settings(opt="gd").options(100) == {}
    assert Settings(opt="gd", init_lr=0.1, fix_lr=True).options(100) == {"step": 0.1}


def test_same_seed_same_numbers(command):
    line = "--opt sgd --epochs 2 --xp-name a"
    first = command(line)
    seed = re.search(r"seed (\d+)", first.stdout).group(1)  # drawn, and printed
    again, other = command(f"{line} --seed {seed}"), command(f"{line} --seed 5")
    numbers = [[row[2:] for row in ROW.findall(o.stdout)] for o in (first, again, other)]
    assert numbers[0] == numbers[1] != numbers[2]


def test_numbers_of_a_run(small, monkeypatch, tmp_path):
    monkeypatch.setattr("zerogap.lab.practical.load_mnist", lambda name: small)
    lines = []
    settings = Settings(opt="bcfw", epochs=3, seed=0, xp_name="mine")
    outcome = run(settings, tmp_path / "new" / "folder", lambda text, style="": lines.append(text))
    assert outcome.picture == (tmp_path / "new" / "folder" / "mine.png").resolve()
    result, history = outcome.result, outcome.result.history
    problem = zg.Problem(small.X_train, small.y_train, "multiclass-hinge", 1e-3)
    assert result.certificate.primal == pytest.approx(problem.primal(result.w, result.b))
    assert 0 <= result.certificate.gap < problem.primal(0 * result.w)
    wrong = np.argmax(small.X_test @ result.w.T, axis=1) != small.y_test
    assert outcome.test_error == pytest.approx(wrong.mean())
    last = ROW.findall("\n".join(lines))[-1]
    assert float(last[2]) == pytest.approx(history["primal"][-1], abs=1e-6)
    assert float(last[3]) == pytest.approx(100 * history["training_error"][-1], abs=0.01)
    assert float(last[4]) == pytest.approx(100 * history["validation_error"][-1], abs=0.01)


def test_estimate_is_the_mean_before_each_update(small, monkeypatch, tmp_path):
    monkeypatch.setattr("zerogap.lab.practical.load_mnist", lambda name: small)
    result = run(Settings(opt="gd", obj="logistic", epochs=2, seed=0), tmp_path).result
    assert result.history["estimate"][1] == pytest.approx(np.log(10))  # at w = 0
    assert result.history["estimate"][2] == pytest.approx(result.history["primal"][1])


def test_failures_end_with_1(command, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    outcome = testing.CliRunner().invoke(
        cli.make_app(), ["practical", "--out", str(tmp_path / "file")]
    )
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert "file" in outcome.stderr
    monkeypatch.setattr("zerogap.lab.practical.find_spec", lambda name: None)
    outcome = command("--opt gd")
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert "zerogap[lab]" in outcome.stderr


def test_interrupted_runs(small, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("zerogap.lab.practical.load_mnist", lambda name: small)
    solve = zg.solvers.solve

    def interrupted_at(epoch):
        def stop(record):
            if record.epoch >= epoch:
                raise KeyboardInterrupt

        return lambda *given, **more: solve(*given, **{**more, "callback": stop})

    line = ["practical", "--opt", "bcfw", "--out", str(tmp_path)]
    for epoch, pictures in ((0, 0), (2, 1)):
        monkeypatch.setattr("zerogap.solvers.solve", interrupted_at(epoch))
        code, out, err = run_main(monkeypatch, capsys, *line)
        assert code == 130
        assert err.endswith("interrupted\n")
        assert ("interrupted after 2 epochs" in out) == (epoch == 2)
        assert len(list(tmp_path.iterdir())) == pictures


def test_missing_data(monkeypatch, tmp_path):
    monkeypatch.setenv("ZEROGAP_DATA", str(tmp_path))
    outcome = testing.CliRunner().invoke(cli.make_app(), ["practical"])
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert outcome.stderr.count("\n") == 1
    for part in ("train-images-idx3-ubyte.gz", str(tmp_path / "mnist"), "ba891046"):
        assert part in outcome.stderr
    monkeypatch.delenv("ZEROGAP_DATA")
    with pytest.raises(FileNotFoundError, match=r"train-images.*set ZEROGAP_DATA.*ba891046"):
        load_mnist()
    with pytest.raises(FileNotFoundError, match=r"put it into .*here"):
        load_mnist(folder=tmp_path / "here")


def run_main(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["zerogap", *arguments])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    return leaving.value.code or 0, *capsys.readouterr()


def test_main(monkeypatch, capsys):
    code, out, err = run_main(monkeypatch, capsys, "--help")
    assert (code, err) == (0, "")
    assert "practical" in out
    assert run_main(monkeypatch, capsys)[:2] == (0, out)
    assert run_main(monkeypatch, capsys, "--version") == (0, f"zerogap {zg.__version__}\n", "")
    code, out, _ = run_main(monkeypatch, capsys, "practical", "--help")
    assert code == 0
    for flag in [*Settings.__dataclass_fields__, "out"]:
        assert f"--{flag.replace('_', '-')} " in out


@pytest.mark.parametrize(
    "line", ["nothing", "practical --opt adam", "practical --epochs x", "practical --unknown"]
)
def test_main_refuses_in_one_line(line, monkeypatch, capsys):
    code, out, err = run_main(monkeypatch, capsys, *line.split())
    assert (code, out) == (2, "")
    assert re.fullmatch(r"zerogap.*: .*; see zerogap.* --help\n", err)


def test_main_passes_exit_codes_on(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("ZEROGAP_DATA", str(tmp_path))
    assert run_main(monkeypatch, capsys, "practical", "--opt", "bcfw", "--fix-lr")[0] == 2
    assert run_main(monkeypatch, capsys, "practical")[0] == 1


def test_main_without_typer(monkeypatch, capsys):
    real = builtins.__import__

    def without_typer(name, *rest, **more):
        if name == "typer":
            raise ModuleNotFoundError("No module named 'typer'", name="typer")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_typer)
    code, out, err = run_main(monkeypatch, capsys, "--help")
    assert (code, out) == (1, "")
    assert "zerogap[cli]" in err


def test_error_rate_is_a_share():
    X, y = np.eye(4, dtype=np.float32), np.array([0, 1, 2, 2])
    assert error_rate(X, y)(np.eye(4), 0.0) == 0.25
    assert error_rate(X, y)(np.eye(4), np.array([0.0, 9.0, 0.0, 0.0])) == 0.75


def test_unknown_settings_are_refused():
    with pytest.raises(UsageError, match="closed-form"):
        Settings(opt="bcfw", obj="logistic").check()


# The oracles: values and (sub-)gradients of both objectives


@pytest.fixture
def oracle():
    """Twenty rows, four classes of which all occur, and weights that are not zero."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((20, 5)), rng.permutation(np.arange(20) % 4)
    assert len(set(y)) == 4
    return X, y, rng.standard_normal((4, 5))


def test_softmax_gradient_equals_differences(oracle):
    X, y, w = oracle
    problem = zg.Problem(X, y, "softmax", 0.1)
    z = X @ w.T
    value = np.mean(np.log(np.exp(z).sum(axis=1)) - z[np.arange(20), y]) + 0.05 * np.sum(w**2)
    assert problem.primal(w) == pytest.approx(value)
    gradient = problem.gradient(w)
    for place in np.ndindex(w.shape):
        step = np.zeros_like(w)
        step[place] = 1e-6
        slope = (problem.primal(w + step) - problem.primal(w - step)) / 2e-6
        assert gradient[place] == pytest.approx(slope, abs=1e-7)


def test_hinge_subgradient_follows_the_worst_class(oracle):
    X, y, w = oracle
    problem = zg.Problem(X, y, "multiclass-hinge", 0.1)
    own = np.eye(4)[y]
    scores = X @ w.T + 1 - own
    worst = np.eye(4)[scores.argmax(axis=1)]
    value = np.mean(np.sum((worst - own) * scores, axis=1)) + 0.05 * np.sum(w**2)
    assert problem.primal(w) == pytest.approx(value)
    gradient = (worst - own).T @ X / 20 + 0.1 * w
    np.testing.assert_allclose(problem.gradient(w), gradient, atol=1e-12)
    for direction in np.random.default_rng(2).standard_normal((50, *w.shape)):
        bound = problem.primal(w) + np.sum(gradient * direction)
        assert problem.primal(w + direction) >= bound - 1e-12


def test_sgd_step_of_all_rows_is_a_gradient_step(oracle):
    X, y, w = oracle
    for loss in ("softmax", "multiclass-hinge"):
        problem = zg.Problem(X, y, loss, 0.1)
        solver = zg.SGD(batch_size=20, step=0.3, schedule="sqrt")
        warm = (w, 0.0, None)
        once = zg.solve(problem, solver, tol=0, max_epochs=1, warm_start=warm)
        np.testing.assert_allclose(once.w, w - 0.3 * problem.gradient(w), atol=1e-12)


def test_frank_wolfe_step_is_the_best_on_its_segment(oracle):
    X, y, _ = oracle
    problem = zg.Problem(X, y, "multiclass-hinge", 0.1)
    options = {"tol": 0, "random_state": 0}
    now, after = (
        zg.solve(problem, zg.BCFW(batch_size=20), max_epochs=k, **options) for k in (3, 4)
    )
    # the vertex is the negative sub-gradient: w_s = w - gradient / mu (zero at the optimum only)
    towards = -problem.gradient(now.w) / problem.lam
    taken = np.sum((after.w - now.w) * towards) / np.sum(towards**2)
    assert 0 < taken <= 1
    np.testing.assert_allclose(after.w, now.w + taken * towards, atol=1e-10)
    gap = now.certificate.primal - problem.dual(now.alpha)
    best = gap / (problem.lam * np.sum(towards**2))
    assert taken == pytest.approx(min(1.0, best), rel=1e-6)


# The data


def test_read_idx_round_trip():
    images, labels = digits(np.random.default_rng(0), 5)
    np.testing.assert_array_equal(mnist.read_idx(idx(images)), images)
    np.testing.assert_array_equal(mnist.read_idx(idx(labels)), labels)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an idx file"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x00", "not an idx file"),  # floats
        (b"\x00\x01\x08\x01\x00\x00\x00\x00", "not an idx file"),
        (b"\x00\x00\x08\x00", "not an idx file"),
        (b"\x00\x00\x08\x03\x00\x00\x00\x01", "ends within its header of 16 bytes"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02a", "must hold 2 values"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02abc", "must hold 2 values"),
    ],
)
def test_read_idx_is_strict(content, message):
    with pytest.raises(ValueError, match=f"labels.gz .*{message}|labels.gz is {message}"):
        mnist.read_idx(content, "labels.gz")


def test_split():
    rng = np.random.default_rng(0)
    images, labels = np.arange(60, dtype=np.uint8).reshape(60, 1, 1), np.arange(60) % 10
    tests = np.arange(20, dtype=np.uint8).reshape(20, 1, 1), np.arange(20) % 10
    parts = mnist.split_mnist(images, labels, *tests, (50, 10, 20))
    fewer = mnist.split_mnist(images, labels, *tests, (5, 2, 3))
    pixels = [np.rint((X[:, 0] * 0.3081 + 0.1307) * 255).astype(int) for X in parts[::2]]
    some = [np.rint((X[:, 0] * 0.3081 + 0.1307) * 255).astype(int) for X in fewer[::2]]
    assert sorted([*pixels[0], *pixels[1]]) == list(range(60))
    assert pixels[2].tolist() == list(range(20))
    order = np.random.default_rng(1234).permutation(60)
    np.testing.assert_array_equal(pixels[0], order[:50])
    for part, subset, y in zip(pixels, some, fewer[1::2], strict=True):
        assert set(subset) < set(part)
        np.testing.assert_array_equal(subset % 10, y)
    with pytest.raises(ValueError, match="too large for 60"):
        mnist.split_mnist(images, labels, *tests, (51, 9, 20))
    with pytest.raises(ValueError, match="do not belong together"):
        mnist.split_mnist(images, rng.permutation(59), *tests, (5, 2, 3))


def test_wrong_checksum_and_name(tmp_path):
    for file in mnist.FILES:
        (tmp_path / file.name).write_bytes(b"something else")
    with pytest.raises(ValueError, match="damaged or another file: its sha256 is"):
        load_mnist(folder=tmp_path)
    with pytest.raises(ValueError, match="name must be 'mnist' or 'mini-mnist', got 'emnist'"):
        load_mnist("emnist")


def test_real_mnist(data_folder):
    full, mini = load_mnist(folder=data_folder / "mnist"), load_mnist("mini-mnist")
    assert [len(part) for part in full[::2]] == [50_000, 10_000, 10_000]
    assert [len(part) for part in mini[::2]] == [5_000, 1_000, 1_000]
    for data in (full, mini):
        assert isinstance(data, Mnist)
        for X, y in zip(data[::2], data[1::2], strict=True):
            assert X.shape == (len(y), 784)
            assert (X.dtype, y.dtype) == (np.float32, np.int64)
            assert X.mean() == pytest.approx(0, abs=0.02)
            assert X.std() == pytest.approx(1, abs=0.02)
            assert set(y) == set(range(10))
    counts = np.bincount(full.y_train) + np.bincount(full.y_validation)
    known = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert counts.tolist() == known
    known = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(full.y_test).tolist() == known
    np.testing.assert_array_equal(mini.X_train, full.X_train[:5000])
