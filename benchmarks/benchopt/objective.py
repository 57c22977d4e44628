"""Regularised linear classification, with a proved distance from the optimum at every point.

For benchopt (https://benchopt.github.io): benchopt run benchmarks/benchopt
"""

from benchopt import BaseObjective


class Objective(BaseObjective):
    """1/n sum_i phi(y_i (x_i.w + b)) + lam |w|^2 / 2, the intercept free."""

    name = "Certified linear classification"
    requirements = ["pip::zerogap"]
    min_benchopt_version = "1.6"
    parameters = {"loss": ["logistic", "hinge", "squared-hinge"], "C": [1.0]}

    def set_data(self, X, y):
        self.X, self.y = X, y

    def get_objective(self):
        return {"X": self.X, "y": self.y, "loss": self.loss, "C": self.C}

    def get_one_result(self):
        return {"w": [0.0] * self.X.shape[1], "b": 0.0}

    def evaluate_result(self, w, b):
        """Return P, and between which shares of it the point is proved to be above min P."""
        import zerogap as zg

        lam = 1.0 / (self.C * len(self.y))
        audit = zg.certify_weights(
            w, b, self.X, self.y, loss=self.loss, lam=lam, fit_intercept=True
        )
        return {
            "value": audit.primal,
            "relative_gap": audit.relative_gap,
            "at_least": audit.at_least / audit.primal,
        }
