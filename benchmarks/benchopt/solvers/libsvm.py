"""LIBSVM, through scikit-learn: the hinge with a free intercept."""

from benchopt import BaseSolver


class Solver(BaseSolver):
    """`sklearn.svm.SVC` with a linear kernel."""

    name = "LIBSVM"
    requirements = ["scikit-learn"]
    sampling_strategy = "tolerance"

    def skip(self, X, y, loss, C):
        return loss != "hinge", "LIBSVM has the hinge only"

    def set_objective(self, X, y, loss, C):
        from sklearn.svm import SVC

        self.X, self.y = X, y
        self.model = SVC(kernel="linear", C=C, max_iter=1_000_000)

    def run(self, tolerance):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.set_params(tol=max(tolerance, 1e-12)).fit(self.X, self.y)

    def get_result(self):
        return {"w": self.model.coef_[0], "b": self.model.intercept_[0]}
