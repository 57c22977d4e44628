"""Model files: safe to read, always whole, true to the bit.  And ONNX, for other programs."""

from zerogap.model_io.claims import Recertified, recertify
from zerogap.model_io.files import ModelFile, ModelFileError, load, loads, read, save
from zerogap.model_io.onnx import to_onnx

__all__ = [
    "ModelFile",
    "ModelFileError",
    "Recertified",
    "load",
    "loads",
    "read",
    "recertify",
    "save",
    "to_onnx",
]
