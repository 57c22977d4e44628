"""Landmarks are their formula, scaling is scikit-learn's, crops have the nucleus in the middle."""

import doctest
import io
import sys
import tarfile

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from zerogap import transforms
from zerogap.transforms import (
    ColumnScaler,
    GaussianLandmarks,
    bloodcells,
    crop_archive,
    crop_cells,
    landmarks,
    read_images,
    scaling,
    stages,
)


@parametrize_with_checks([GaussianLandmarks(), ColumnScaler(), ColumnScaler("max-abs")])
def test_transforms_follow_scikit_learn(estimator, check):
    check(estimator)


def test_scaling_of_columns_is_that_of_scikit_learn():
    X = np.random.default_rng(0).standard_normal((50, 3)) * [1.0, 100.0, 0.01] + 3.0
    X[::4, 2] = 0.0
    Z = ColumnScaler().fit_transform(X)
    assert np.allclose(Z, StandardScaler().fit_transform(X), atol=1e-12)
    S = ColumnScaler().fit_transform(sparse.csr_matrix(X)).toarray()
    assert np.allclose(S - S.mean(axis=0), Z, atol=1e-12)  # the same, up to what b makes up for
    assert np.array_equal(S[:, 2] == 0.0, X[:, 2] == 0.0)
    with pytest.raises(ValueError, match="without an intercept"):
        ColumnScaler(has_intercept=False).fit(sparse.csr_matrix(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("train", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("test", [np.asarray, sparse.csr_matrix])
def test_landmark_features_are_the_formula(train, test, dtype, monkeypatch):
    monkeypatch.setattr(landmarks, "_DISTANCES_PER_BLOCK", 50)  # several blocks
    X = np.random.default_rng(0).standard_normal((40, 3)).astype(dtype)
    transform = GaussianLandmarks(share=0.25, h=1.7, random_state=0).fit(train(X))
    features = transform.transform(test(X))
    centres = transform.landmarks_
    centres = centres.toarray() if sparse.issparse(centres) else centres
    assert len(centres) == 10
    assert {tuple(c) for c in centres} <= {tuple(x) for x in X}
    assert len({tuple(c) for c in centres}) == 10, "drawn without replacement"
    expected = np.exp(-cdist(X, centres, "sqeuclidean") / 1.7**2)
    np.testing.assert_allclose(features, expected, rtol=1e-12 if dtype == np.float64 else 1e-5)
    assert features.dtype == dtype
    assert list(transform.get_feature_names_out()[:2]) == [
        "gaussianlandmarks0",
        "gaussianlandmarks1",
    ]


def test_a_landmark_is_at_distance_zero_of_itself_far_from_the_origin():
    X = 1e4 + np.random.default_rng(0).standard_normal((30, 5)).astype(np.float32)
    features = GaussianLandmarks(share=1.0).fit_transform(X)
    np.testing.assert_allclose(np.diag(features), 1.0, atol=1e-6)
    np.testing.assert_allclose(features, np.exp(-cdist(X, X, "sqeuclidean")), atol=1e-5)


def test_number_of_landmarks_and_seed():
    X = np.random.default_rng(0).standard_normal((20, 2))
    draws = [
        GaussianLandmarks(n_landmarks=7, random_state=seed).fit(X).landmarks_ for seed in (0, 0, 1)
    ]
    assert draws[0].shape == (7, 2)
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    assert len(GaussianLandmarks(share=1e-6).fit(X).landmarks_) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"h": 0}, "h must be a positive number, got 0"),
        ({"h": np.nan}, "h must be a positive"),
        ({"share": 0}, r"share must be in \(0, 1\]"),
        ({"share": 1.5}, r"share must be in \(0, 1\]"),
        ({"n_landmarks": 21}, "n_landmarks is 21, but X has only 20 rows"),
        ({"n_landmarks": 0}, "n_landmarks must be an integer >= 1, got 0"),
        ({"n_landmarks": 2.0}, "n_landmarks must be an integer >= 1"),
    ],
)
def test_impossible_landmarks_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        GaussianLandmarks(**parameters).fit(np.zeros((20, 2)))


def photograph(row, column, frame=0, shape=(240, 320), radius=20):
    """A dark disc and dark specks on a bright background, in a black frame."""
    rng = np.random.default_rng(row * 1000 + column)
    image = rng.normal(210, 5, (*shape, 3))
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    image[(rows - row) ** 2 + (columns - column) ** 2 <= radius**2] = 110, 90, 150
    image[rng.integers(shape[0], size=30), rng.integers(shape[1], size=30)] = 85
    if frame:
        image[:frame] = image[-frame:] = image[:, :frame] = image[:, -frame:] = 0
    return image.clip(0, 255).astype(np.uint8)


def encode(image, suffix=".png"):
    cv2 = pytest.importorskip("cv2")
    return cv2.imencode(suffix, np.ascontiguousarray(image[..., ::-1]))[1].tobytes()


def write_tar(path, files):
    with tarfile.open(path, "w:xz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("frame", [0, 12])
@pytest.mark.parametrize("place", [(120, 160), (90, 230), (70, 70)])
def test_the_crop_is_centred_on_the_nucleus(place, frame):
    pytest.importorskip("cv2")
    image = photograph(*place, frame)
    steps = stages(image)
    assert np.abs(np.subtract(steps.centre, place)).max() <= 2
    assert np.abs(np.subtract(steps.corner, np.subtract(place, 60))).max() <= 2
    grey = image @ [0.299, 0.587, 0.114]
    top, left = steps.corner
    window = grey[top : top + 120, left : left + 120]
    assert steps.crop.shape == (120, 120)
    bright = window >= bloodcells.FRAME
    np.testing.assert_allclose(steps.crop[bright], 255 - window[bright], atol=1)


def test_the_steps_do_what_they_say():
    pytest.importorskip("cv2")
    image = photograph(120, 160, frame=12)
    steps = stages(image)
    kept = steps.grey >= bloodcells.FRAME
    assert not kept[:10].any()
    np.testing.assert_array_equal(steps.repaired[kept], steps.grey[kept])
    assert set(steps.repaired[~kept]) == {int(steps.grey[kept].mean())}
    dark = steps.nucleus == 255
    assert steps.repaired[dark].max() < steps.repaired[~dark].min()
    assert dark.mean() >= bloodcells.NUCLEUS
    assert not steps.opened[~dark].any(), "an opening only removes"
    assert 0 < (steps.opened == 255).sum() < dark.sum()
    rows, columns = np.nonzero(steps.opened)
    np.testing.assert_allclose(steps.centre, (rows.mean(), columns.mean()))


def test_crops_stay_inside_the_picture():
    pytest.importorskip("cv2")
    assert stages(photograph(5, 5)).corner == (0, 0)
    assert stages(photograph(235, 315)).corner == (120, 200)
    even = np.full((120, 120, 3), 200, np.uint8)
    assert stages(even).corner == (0, 0)
    np.testing.assert_array_equal(stages(even).crop, 55)


def test_threads_and_progress_change_nothing():
    pytest.importorskip("cv2")
    images = np.array([photograph(80 + k, 100 + 5 * k) for k in range(20)])
    seen = []
    crops = crop_cells(iter(images), threads=3, progress=seen.append)
    np.testing.assert_array_equal(crops, [stages(image).crop for image in images])
    np.testing.assert_array_equal(crops, crop_cells(images, threads=1))
    assert seen == list(range(1, 21))
    assert crop_cells([]).shape == (0, 120, 120)


def test_pictures_are_read_a_few_ahead():
    pytest.importorskip("cv2")
    read, most = 0, 0

    def images():
        nonlocal read
        for _ in range(60):
            read += 1
            yield photograph(100, 100)

    def follow(done):
        nonlocal most
        most = max(most, read - done)

    crop_cells(images(), threads=2, progress=follow)
    assert read == 60
    assert most <= 8


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((240, 320), np.uint8), r"picture 1: .* got uint8 of shape \(240, 320\)"),
        (np.zeros((240, 320, 3)), "picture 1: .* got float64"),
        (np.zeros((100, 320, 3), np.uint8), r"picture 1: .* at least 120 x 120, got \(100, 320\)"),
        (np.zeros((240, 320, 3), np.uint8), "picture 1: the picture is black"),
    ],
)
def test_bad_pictures_are_named(image, message):
    pytest.importorskip("cv2")
    with pytest.raises(ValueError, match=message):
        crop_cells([photograph(100, 100), image])


def test_archives_and_folders_hold_the_same_pictures(tmp_path):
    images = {"B/_1_2.png": photograph(90, 90), "a.png": photograph(130, 200)}
    files = {name: encode(image) for name, image in images.items()}
    archive = write_tar(tmp_path / "cells.tar.xz", {**files, "notes.txt": b"not a picture"})
    folder = tmp_path / "cells"
    for name, content in {**files, "notes.txt": b"not a picture"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    for path in (archive, folder):
        found = dict(read_images(path))
        assert list(found) == list(images)
        for name, image in images.items():
            np.testing.assert_array_equal(found[name], image)
        crops = crop_archive(path)
        assert list(crops.names) == list(images)
        np.testing.assert_array_equal(crops.images, crop_cells(images.values()))


def test_bad_files_are_named(tmp_path):
    pytest.importorskip("cv2")
    good = encode(photograph(90, 90), ".jpg")
    for content in (b"", b"no picture"):
        archive = write_tar(tmp_path / "bad.tar.xz", {"a/1.jpeg": good, "a/2.jpeg": content})
        message = rf"a/2\.jpeg: not a readable JPEG or PNG picture \({len(content)} bytes\)"
        with pytest.raises(ValueError, match=message):
            crop_archive(archive)
        with pytest.raises(ValueError, match=message):
            list(read_images(archive))
    whole = archive.read_bytes()
    for content in (whole[: len(whole) // 2], b"no archive"):
        archive.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.tar\.xz is not a whole tar archive"):
            crop_archive(archive)
    with pytest.raises(FileNotFoundError):
        crop_archive(tmp_path / "absent.tar.xz")


@pytest.mark.parametrize("kind", ["archive", "folder"])
def test_the_cache_serves_the_same_pictures_only(kind, tmp_path, monkeypatch):
    contents = [encode(photograph(90, 90)), encode(photograph(130, 200))]

    def write(content):
        if kind == "archive":
            return write_tar(tmp_path / "cells.tar.xz", {"a.png": content})
        (tmp_path / "cells").mkdir(exist_ok=True)
        (tmp_path / "cells" / "a.png").write_bytes(content)
        return tmp_path / "cells"

    cache = tmp_path / "crops.npz"
    calls = []
    crop_all = bloodcells._crop_all
    monkeypatch.setattr(bloodcells, "_crop_all", lambda *args: calls.append(1) or crop_all(*args))
    first = crop_archive(write(contents[0]), cache=cache)
    again = crop_archive(write(contents[0]), cache=cache)
    assert len(calls) == 1
    np.testing.assert_array_equal(first.images, again.images)
    assert list(first.names) == list(again.names) == ["a.png"]
    other = crop_archive(write(contents[1]), cache=cache)
    assert len(calls) == 2
    assert not np.array_equal(first.images, other.images)
    cache.write_bytes(b"damaged")
    np.testing.assert_array_equal(
        crop_archive(write(contents[1]), cache=cache).images, other.images
    )
    assert len(calls) == 3
    monkeypatch.setattr(bloodcells, "FRAME", 79)
    crop_archive(write(contents[1]), cache=cache)
    assert len(calls) == 4


def test_without_opencv_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'zerogap\[lab\]'"):
        stages(photograph(100, 100))


def test_examples_in_docstrings():
    pytest.importorskip("cv2")
    for module in (bloodcells, landmarks, scaling):
        assert doctest.testmod(module).failed == 0
    assert set(transforms.__all__) <= set(dir(transforms))


def test_real_cells_are_found(data_folder):
    """Our centres agree with crops that were made in another way, from colours."""
    pytest.importorskip("cv2")
    archive = data_folder / "bloodcells" / "TEST_lymphocyte_neutrophil.tar.xz"
    known = np.load(data_folder / "bloodcells" / "crops_gray_40x40.npz")
    columns = (known["split"], known["y"], known["name"], known["crop_top_left"])
    corners = {(s, y, name): corner for s, y, name, corner in zip(*columns, strict=True)}
    distances = []
    for name, image in read_images(archive):
        part, kind, file = name.split("/")
        key = ["TRAIN", "TEST", "TEST_SIMPLE"].index(part), 1 - 2 * (kind == "LYMPHOCYTE")
        corner = corners[(*key, file.removesuffix(".jpeg"))]
        distances.append(np.abs(np.subtract(stages(image).corner, corner)).max())
    assert len(distances) == 1298
    assert np.mean(np.array(distances) <= 20) > 0.97
    assert np.median(distances) <= 8
