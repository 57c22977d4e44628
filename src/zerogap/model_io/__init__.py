"""Model files: safe to read, always whole, true to the bit.  And ONNX, for other programs."""

from zerogap.model_io.claims import Recertified, recertify
from zerogap.model_io.files import ModelFile, ModelFileError, load, loads, read, save
from zerogap.model_io.onnx import to_onnx
from zerogap.model_io.proofs import prove, save_proof

__all__ = [
    "ModelFile",
    "ModelFileError",
    "Recertified",
    "load",
    "loads",
    "prove",
    "read",
    "recertify",
    "save",
    "save_proof",
    "to_onnx",
]
