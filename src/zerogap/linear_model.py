"""scikit-learn's linear models under their own names, trained to a proved distance.

Replace ``from sklearn.linear_model import LogisticRegression`` by ``from zerogap.linear_model
import LogisticRegression``.  Parameters, defaults, attributes and the objective are scikit-learn's;
each fitted model also has a `certificate_`.

- `tol`: the fit ends at a relative duality gap of ``tol**2`` where the loss is smooth (a gap is
  like the square of the gradient that scikit-learn measures), of ``tol`` where it has kinks.
- `solver`, `dual`, `selection`, `precompute`, learning rates and the like choose between methods of
  scikit-learn.  They are accepted and change nothing, except for ``solver="liblinear"``, which
  regularises the intercept, there and here.  What scikit-learn's methods do not take together
  (``dual=True`` and lbfgs, say) is refused here, too, so that searches count it as failed.
- `max_iter`: a number below scikit-learn's default limits the epochs; else 10 000 are allowed.
  With 0 the weights stay where they start.
- SGDClassifier and SGDRegressor divide sample weights by their mean, so that a weight of 2 is a row
  that occurs twice.  scikit-learn's do not: with them, weights of 2 also halve `alpha`.
- HuberRegressor minimises over the scale, too, and is certified in all of its parameters together.
  QuantileRegressor, which has an L1 penalty, is solved as a linear program.
- `n_iter_` counts epochs of our solvers (also of ridge models, where it is None for some of
  scikit-learn's), `solver_` repeats `solver`, and `t_` is 1.
- Sample weights below zero are refused.
- A class without weight (of `class_weight`, of rows, or in a fold) has an intercept of minus
  infinity, the limit that scikit-learn's solvers stop on their way to.
- Objectives without a penalty, pure L1 elsewhere, and ``positive=True`` are fitted by
  scikit-learn's own solver, with a warning of the class `NothingProved` and `certificate_` None.
  `zerogap.certify` audits those with pure L1.

The CV classes choose over the grid of scikit-learn, or over all numbers of an interval with
``Cs="all"`` or ``alphas="all"``; `choice_` tells what is proved of the choice.

Not here: Lasso and LassoCV, which are pure L1 (`zerogap.certify` audits scikit-learn's).

>>> from zerogap.linear_model import LogisticRegression
>>> from sklearn.datasets import load_iris
>>> model = LogisticRegression(C=10.0).fit(*load_iris(return_X_y=True))
>>> model.certificate_.relative_gap <= 1e-8
True
"""

from zerogap.dropin.cross_validation import (
    ElasticNetCV,
    LogisticRegressionCV,
    RidgeClassifierCV,
    RidgeCV,
)
from zerogap.dropin.fit import NothingProved
from zerogap.dropin.huber import HuberRegressor
from zerogap.dropin.models import (
    ElasticNet,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from zerogap.dropin.quantile import QuantileRegressor

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "LogisticRegression",
    "LogisticRegressionCV",
    "NothingProved",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
    "SGDRegressor",
]
