"""The simulation of the five reports."""

from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Rows of a Gaussian, labels of a noisy line."""

    name = "simulated"
    parameters = {"n_samples": [1000], "random_state": [0]}

    def get_data(self):
        import zerogap as zg

        X, y, _ = zg.datasets.make_simulated(
            n_samples=self.n_samples, random_state=self.random_state
        )
        return {"X": X, "y": y}
