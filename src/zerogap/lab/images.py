"""Images as rows of a table."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np


def pixels(image: np.ndarray) -> dict[str, Any]:
    """Return an image, grey or RGB with values 0 to 255, as columns of a row."""
    image = np.ascontiguousarray(image, dtype=np.uint8)
    height, width = image.shape[:2]
    return {"pixels": image.tobytes(), "height": height, "width": width}


def unpack(row: Mapping[str, Any]) -> np.ndarray:
    """Return the image of a row that holds `pixels`."""
    shape = (int(row["height"]), int(row["width"]), -1)
    image = np.frombuffer(row["pixels"], np.uint8).reshape(shape)
    return image[:, :, 0] if image.shape[2] == 1 else image


def png(row: Mapping[str, Any]) -> str:
    """Return the image of such a row as a PNG file, in base 64."""
    from matplotlib.image import imsave

    file = io.BytesIO()
    imsave(file, unpack(row), cmap="gray", vmin=0, vmax=255, format="png")
    return base64.b64encode(file.getvalue()).decode()
