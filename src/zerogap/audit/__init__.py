"""Certificates for models that somebody else trained, and what each of them minimises."""

from zerogap.audit.bound import Audit, audit_all
from zerogap.audit.convention import Convention, UnknownObjective, models_of, targets_of
from zerogap.audit.files import read_coefficients, read_liblinear, read_onnx, read_vw
from zerogap.audit.glmnet import Glmnet
from zerogap.audit.run import audit, certify, certify_weights, posed
from zerogap.audit.table import convention_of

__all__ = [
    "Audit",
    "Convention",
    "Glmnet",
    "UnknownObjective",
    "audit",
    "audit_all",
    "certify",
    "certify_weights",
    "convention_of",
    "models_of",
    "posed",
    "read_coefficients",
    "read_liblinear",
    "read_onnx",
    "read_vw",
    "targets_of",
]
