"""Tables of scikit-learn, as they are and with scaled columns."""

from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Two classes: the first against all others."""

    name = "tables"
    parameters = {"table": ["breast_cancer", "wine"], "scaled": [True, False]}

    def get_data(self):
        import numpy as np
        from sklearn import datasets
        from sklearn.preprocessing import scale

        X, y = getattr(datasets, f"load_{self.table}")(return_X_y=True)
        return {"X": scale(X) if self.scaled else X, "y": np.where(y == 0, 1.0, -1.0)}
