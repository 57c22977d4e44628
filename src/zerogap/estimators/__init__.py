"""scikit-learn estimators with a certificate."""

from zerogap.estimators.classifier import LinearClassifier
from zerogap.estimators.regressor import LinearRegressor

__all__ = ["LinearClassifier", "LinearRegressor"]
