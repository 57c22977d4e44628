"""scikit-learn's solvers of logistic regression, with a free intercept as the objective has it."""

from benchopt import BaseSolver


class Solver(BaseSolver):
    """`sklearn.linear_model.LogisticRegression`."""

    name = "scikit-learn"
    requirements = ["scikit-learn"]
    parameters = {"solver": ["lbfgs", "newton-cholesky", "saga"]}
    sampling_strategy = "iteration"

    def skip(self, X, y, loss, C):
        return loss != "logistic", "LogisticRegression has the logistic loss only"

    def set_objective(self, X, y, loss, C):
        from sklearn.linear_model import LogisticRegression

        self.X, self.y = X, y
        self.model = LogisticRegression(C=C, solver=self.solver, tol=1e-15)

    def run(self, n_iter):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.set_params(max_iter=n_iter + 1).fit(self.X, self.y)

    def get_result(self):
        return {"w": self.model.coef_[0], "b": self.model.intercept_[0]}
