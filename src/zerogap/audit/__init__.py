"""Certificates for models that somebody else trained, and what each of them minimises."""

from zerogap.audit.bound import Audit, audit_all
from zerogap.audit.convention import Convention, UnknownObjective, models_of, targets_of
from zerogap.audit.run import audit, certify, posed
from zerogap.audit.table import convention_of

__all__ = [
    "Audit",
    "Convention",
    "UnknownObjective",
    "audit",
    "audit_all",
    "certify",
    "convention_of",
    "models_of",
    "posed",
    "targets_of",
]
