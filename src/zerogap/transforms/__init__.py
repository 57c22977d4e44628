"""Transforms that scikit-learn lacks: gaussian landmark features, and crops of blood cells."""

from zerogap.transforms.bloodcells import (
    Crops,
    Stages,
    crop_archive,
    crop_cells,
    read_images,
    stages,
)
from zerogap.transforms.landmarks import GaussianLandmarks

__all__ = [
    "Crops",
    "GaussianLandmarks",
    "Stages",
    "crop_archive",
    "crop_cells",
    "read_images",
    "stages",
]
