"""The coefficients of a model by name, the ones that matter most first."""

from typing import Any, NamedTuple


class Coefficient(NamedTuple):
    """One coefficient.

    Attributes
    ----------
    feature : str
    label : str
        The class it speaks for, of models with three or more; else empty.
    coef : float
        As the model has it.
    per_unit : float
        The change of the score when the feature grows by one, before scaling.
    effect : float or None
        The change of the score over one standard deviation of the feature; None if not known.
    """

    feature: str
    label: str
    coef: float
    per_unit: float
    effect: float | None


def coefficients(model: Any, encoder: Any, deviation: Any) -> list[Coefficient]:
    """Return the coefficients of a model, sorted by effect, or by size where that is not known."""
    import numpy as np

    W = np.atleast_2d(model.coef_)
    d = W.shape[1]
    names = None if encoder is None else encoder.feature_names
    names = getattr(model, "feature_names_in_", None) if names is None else names
    names = [f"x{k + 1}" for k in range(d)] if names is None else list(map(str, names))
    scale = np.ones(d) if encoder is None or encoder.scale is None else encoder.scale
    sizes = np.abs(W) * (1.0 if deviation is None else deviation)
    order = np.argsort(-sizes.max(axis=0), kind="stable")
    classes = getattr(model, "classes_", ())
    labels = [str(label) for label in classes] if len(W) > 1 else [""]
    return [
        Coefficient(
            names[j],
            labels[k],
            float(W[k, j]),
            float(W[k, j] * scale[j]),
            None if deviation is None else float(W[k, j] * deviation[j]),
        )
        for j in order
        for k in range(len(W))
    ]
