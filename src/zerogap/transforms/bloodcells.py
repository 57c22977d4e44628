"""Crops of white blood cells: find the nucleus in a photograph and cut the cell out.

The pipeline of Bouche & Verluise (2018).  The nucleus is the darkest part of the picture, once the
black frame that rotations leave is painted over.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zerogap.io.atomic import write_file

SIZE = 120
"""Rows and columns of a crop."""

BLUR = 5  # side of the gaussian blur, pixels
FRAME = 80  # pixels darker than this belong to the frame
NUCLEUS = 0.02  # share of the pixels, the darkest, that may be nucleus
OPENING = 5  # side of the square that a piece of the nucleus must hold, pixels
SUFFIXES = (".jpeg", ".jpg", ".png")

Progress = Callable[[int], None]


class Stages(NamedTuple):
    """What each step of the pipeline makes of a picture: uint8, as large as the picture.

    Attributes
    ----------
    blurred, grey, repaired, nucleus, opened : ndarray
        The picture after each step.
    centre : tuple of float
        Centre of the nucleus, as row and column.
    corner : tuple of int
        Upper left corner of the crop, as row and column.
    crop : ndarray
        The crop.
    """

    blurred: np.ndarray
    grey: np.ndarray
    repaired: np.ndarray
    nucleus: np.ndarray
    opened: np.ndarray
    centre: tuple[float, float]
    corner: tuple[int, int]
    crop: np.ndarray


class Crops(NamedTuple):
    """Cropped pictures and the names of their files.

    Attributes
    ----------
    names : ndarray of str
        Names of the files.
    images : ndarray of uint8
        Cropped pictures, one after the other.
    """

    names: np.ndarray
    images: np.ndarray


def stages(image: np.ndarray) -> Stages:
    """Return the result of every step from a photograph to the crop of its cell.

    Blur; grey values; the black frame painted over with the mean of the rest; the darkest pixels,
    which are the nucleus and some specks; an opening against the specks; the mean coordinate of
    what is left; a square of 120 pixels around it, moved inside the picture, in negative.

    Parameters
    ----------
    image : ndarray of shape (rows, columns, 3), uint8
        A picture in red, green and blue, of 120 pixels or more each way.

    Returns
    -------
    Stages
        A named tuple (blurred, grey, repaired, nucleus, opened, centre, corner, crop); nucleus
        and opened are 255 where they hold and 0 elsewhere, centre and corner are (row, column).

    Examples
    --------
    >>> import numpy as np
    >>> picture = np.full((240, 320, 3), 220, np.uint8)
    >>> picture[100:140, 200:240] = 90
    >>> steps = stages(picture)
    >>> steps.centre, steps.corner, steps.crop.shape
    ((119.5, 219.5), (60, 160), (120, 120))
    """
    cv2 = _opencv()
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise ValueError(
            f"a picture must be uint8 of shape (rows, columns, 3), "
            f"got {image.dtype} of shape {image.shape}"
        )
    if min(image.shape[:2]) < SIZE:
        raise ValueError(f"a picture must be at least {SIZE} x {SIZE}, got {image.shape[:2]}")
    blurred = cv2.GaussianBlur(image, (BLUR, BLUR), 0)
    grey = cv2.cvtColor(blurred, cv2.COLOR_RGB2GRAY)
    repaired = _paint_frame(grey)
    counts = np.cumsum(cv2.calcHist([repaired], [0], None, [256], [0, 256]))
    darkest = int(np.searchsorted(counts, NUCLEUS * repaired.size))
    nucleus = cv2.threshold(repaired, darkest, 255, cv2.THRESH_BINARY_INV)[1]
    opened = cv2.morphologyEx(nucleus, cv2.MORPH_OPEN, np.ones((OPENING, OPENING), np.uint8))
    sums = cv2.moments(opened if opened.any() else nucleus, binaryImage=True)
    centre = sums["m01"] / sums["m00"], sums["m10"] / sums["m00"]
    top, left = (
        min(max(0, round(middle + 0.5 - SIZE / 2)), length - SIZE)
        for middle, length in zip(centre, image.shape, strict=False)
    )
    sharp = _paint_frame(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))
    crop = 255 - sharp[top : top + SIZE, left : left + SIZE]
    return Stages(blurred, grey, repaired, nucleus, opened, centre, (top, left), crop)


def crop_cells(
    images: Iterable[np.ndarray],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """Cut the cell out of each picture, in threads.

    Parameters
    ----------
    images : array of shape (n, rows, columns, 3), or iterable of pictures
        Pictures as in `stages`.  An iterable is read as the work goes on, a few pictures ahead.
    threads : int, optional
        Threads, by default one per processor.  The result does not depend on it.
    progress : callable, optional
        Called with the number of pictures done so far.

    Returns
    -------
    ndarray of shape (n, 120, 120), uint8
        Grey values in negative: the nucleus is bright.

    Examples
    --------
    >>> import numpy as np
    >>> picture = np.full((240, 320, 3), 220, np.uint8)
    >>> picture[100:140, 200:240] = 90
    >>> crop_cells([picture, picture]).shape
    (2, 120, 120)
    """
    pictures = ((f"picture {k}", image) for k, image in enumerate(images))
    return _crop_all(pictures, threads, progress).images


def crop_archive(
    path: str | os.PathLike[str],
    *,
    cache: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Crops:
    """Cut the cells out of the pictures of a folder or a tar archive.

    Parameters
    ----------
    path : path
        As in `read_images`.
    cache : path, optional
        A file (.npz) to keep the crops in.  It is used as long as the pictures and the pipeline
        stay the same, and written anew otherwise.
    threads, progress
        As in `crop_cells`.

    Returns
    -------
    Crops
        A named tuple (names, images): the name of each file, and an array as from `crop_cells`.

    Examples
    --------
    >>> names, images = crop_archive("TRAIN.tar.xz", cache="crops.npz")  # doctest: +SKIP
    """
    path = Path(path)
    if cache is None:
        return _crop_all(_files(path), threads, progress)
    key, cache = _fingerprint(path), Path(cache)
    if (kept := _read_cache(cache, key)) is not None:
        return kept
    crops = _crop_all(_files(path), threads, progress)
    write_file(cache, lambda file: np.savez(file, pictures=key, **crops._asdict()))
    return crops


def read_images(path: str | os.PathLike[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the picture of each JPEG or PNG file in a folder or a tar archive.

    One picture is in memory at a time.  Archives may be packed (.tar.xz, .tar.gz, .tar.bz2); the
    files of a folder come in the order of their names.

    Parameters
    ----------
    path : path
        A folder, searched with all folders in it, or an archive.

    Yields
    ------
    name : str
        Path below the folder or in the archive.
    image : ndarray of uint8
        The picture.

    Examples
    --------
    >>> for name, image in read_images("TRAIN.tar.xz"):  # doctest: +SKIP
    ...     print(name, image.shape)
    """
    for name, content in _files(Path(path)):
        yield name, _decode(name, content)


def _crop_all(
    pictures: Iterable[tuple[str, Any]], threads: int | None, progress: Progress | None
) -> Crops:
    """Crop pictures, or files of pictures, in threads, which OpenCV lets run side by side."""
    names: list[str] = []
    crops: list[np.ndarray] = []
    waiting: deque[Future[np.ndarray]] = deque()

    def take() -> None:
        crops.append(waiting.popleft().result())
        if progress is not None:
            progress(len(crops))

    threads = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        for name, picture in pictures:
            names.append(name)
            waiting.append(pool.submit(_crop, name, picture))
            if len(waiting) >= 4 * threads:  # enough to keep all threads busy
                take()
        while waiting:
            take()
    images = np.array(crops, dtype=np.uint8).reshape(-1, SIZE, SIZE)
    return Crops(np.array(names, dtype=np.str_), images)


def _crop(name: str, picture: Any) -> np.ndarray:
    if isinstance(picture, bytes):
        picture = _decode(name, picture)
    try:
        return stages(picture).crop
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _paint_frame(grey: np.ndarray) -> np.ndarray:
    """Replace the black pixels of the frame by the mean of the others."""
    frame = grey < FRAME
    if frame.all():
        raise ValueError(f"the picture is black: no grey value of {FRAME} or more")
    return np.where(frame, np.uint8(grey[~frame].mean()), grey)


def _decode(name: str, content: bytes) -> np.ndarray:
    cv2 = _opencv()
    coded = np.frombuffer(content, np.uint8)
    image = cv2.imdecode(coded, cv2.IMREAD_COLOR) if len(coded) else None
    if image is None:
        raise ValueError(f"{name}: not a readable JPEG or PNG picture ({len(content)} bytes)")
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the pictures in a folder or an archive, one after the other."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.suffix.lower() in SUFFIXES:
                yield file.relative_to(path).as_posix(), file.read_bytes()
        return
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content and Path(member.name).suffix.lower() in SUFFIXES:
                    yield member.name, content.read()
    except (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole tar archive: {error}") from error


def _fingerprint(path: Path) -> str:
    """Return a digest of the pictures and of the pipeline's constants."""
    digest = hashlib.sha256(repr((SIZE, BLUR, FRAME, NUCLEUS, OPENING)).encode())
    if path.is_dir():
        for name, content in _files(path):
            digest.update(f"{name} {len(content)} ".encode() + content)
    else:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _read_cache(cache: Path, key: str) -> Crops | None:
    """Return the crops of a cache file, unless it is absent, damaged or of other pictures."""
    try:
        with np.load(cache, allow_pickle=False) as kept:
            if str(kept["pictures"]) == key:
                return Crops(kept["names"], kept["images"])
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        pass  # it is written anew
    return None


def _opencv() -> Any:
    try:
        import cv2
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "pictures of blood cells need OpenCV: pip install 'zerogap[lab]'"
        ) from None
    return cv2
