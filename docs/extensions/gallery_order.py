"""The order of the gallery: what a newcomer asks first comes first."""

from __future__ import annotations

from pathlib import Path

ORDER = (
    # what a certificate is, and what it says
    *("certificates", "audit_defaults", "certified_labels", "regression_intervals", "rounding"),
    # models
    *("losses", "support", "multiclass_regions", "digits_weights", "newsgroups_pair"),
    *("robust", "quantile_bands", "sparsity", "weights_of_rows"),
    # raw data
    *("units", "offsets", "condition", "out_of_core"),
    # choosing lambda, and other statements
    *("path", "validation_curve", "leave_one_out", "forgetting"),
    # solvers
    *("race", "output_rules", "frank_wolfe", "bounds"),
)


class NewcomersFirst:
    """Sorts the files of examples."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> int:
        """Return the place of an example; a new one has to be given one."""
        return ORDER.index(Path(file).stem.removeprefix("plot_"))

    def __repr__(self) -> str:
        return type(self).__name__
