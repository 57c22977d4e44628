"""Transforms that scikit-learn lacks: landmark features, sparse scaling, crops of blood cells."""

from zerogap.transforms.bloodcells import (
    Crops,
    Stages,
    crop_archive,
    crop_cells,
    read_images,
    stages,
)
from zerogap.transforms.landmarks import GaussianLandmarks
from zerogap.transforms.scaling import ColumnScaler

__all__ = [
    "ColumnScaler",
    "Crops",
    "GaussianLandmarks",
    "Stages",
    "crop_archive",
    "crop_cells",
    "read_images",
    "stages",
]
