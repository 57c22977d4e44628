"""Our own, stopped by its certificate."""

from benchopt import BaseSolver


class Solver(BaseSolver):
    """`zerogap.LinearClassifier` to a relative duality gap."""

    name = "zerogap"
    requirements = ["pip::zerogap"]
    parameters = {"solver": ["auto"]}
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, loss, C):
        import zerogap as zg

        self.X, self.y = X, y
        self.model = zg.LinearClassifier(loss, solver=self.solver, random_state=0)
        self.model.set_params(lam=1.0 / (C * len(y)), max_epochs=10_000)
        self.model.set_params(tol=0.5).fit(X, y)  # compile

    def run(self, tolerance):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.set_params(tol=max(tolerance, 1e-15)).fit(self.X, self.y)

    def get_result(self):
        return {"w": self.model.coef_[0], "b": self.model.intercept_[0]}
