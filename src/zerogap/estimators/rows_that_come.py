"""Methods for rows that come and rows that go: see `zerogap.estimators.updates`."""

from __future__ import annotations

from typing import Any

from zerogap.estimators import updates
from zerogap.estimators.outputs import refuse_several


class Updatable:
    """What both estimators do when rows come or go."""

    _seen: Any = None  # rows, targets and weights of `partial_fit`

    def update(self: Any, X: Any, y: Any, sample_weight: Any = None, *, data: Any = None) -> Any:
        """Train on further rows, from the dual variables that the model has.

        The result is, to the gap that `tol` allows, the model of a fit to all rows; a certificate
        of that problem comes with it.  With ``lam=None``, lam becomes 1 / (new sum of weights);
        ``class_weight="balanced"`` balances anew.

        Parameters
        ----------
        X, y : array-like
            New rows and their targets, of classes that the model knows.
        sample_weight : array-like, optional
            Their weights.
        data : (X, y), (X, y, sample_weight) or Store, optional
            The training data so far, refused if they are others.  Not needed with
            ``keep_data=True``.

        Returns
        -------
        self
            The updated model.  After an error or Ctrl-C it is as it was.

        Examples
        --------
        >>> import zerogap as zg
        >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
        >>> clf = zg.LinearClassifier("hinge", keep_data=True, random_state=0).fit(X[:900], y[:900])
        >>> clf.update(X[900:], y[900:]).certificate_.relative_gap <= 1e-3
        True
        >>> clf.dual_coef_.shape
        (1, 1000)
        """
        refuse_several(self, "update")
        updates.update(self, X, y, sample_weight, data)
        return self

    def forget(self: Any, rows: Any, *, data: Any = None) -> Any:
        """Train on fewer rows, from the dual variables that the model has.

        The dual variables of the forgotten rows leave the weights, and the solver goes on.  The
        certificate then proves how far the model is from the optimum of the problem without these
        rows, which owes nothing to them.  It does not prove that other copies of the rows, or
        parameters chosen with them, are gone: see `zerogap.estimators.updates`.  `lam` and
        `class_weight` as in `update`.

        Parameters
        ----------
        rows : int or array-like of int
            Numbers of the rows in the data of the fit, as in ``row_ids_``; of a Store, in its own
            order.  The other rows keep their numbers.
        data : (X, y), (X, y, sample_weight) or Store, optional
            The training data, with or without rows forgotten earlier, refused if they are others.
            Not needed with ``keep_data=True``.

        Returns
        -------
        self
            The model without the rows.  After an error or Ctrl-C it is as it was.

        Examples
        --------
        >>> import zerogap as zg
        >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
        >>> clf = zg.LinearClassifier("hinge", random_state=0).fit(X, y)
        >>> clf.forget([3, 14], data=(X, y)).certificate_.relative_gap <= 1e-3
        True
        >>> clf.row_ids_[:5]
        array([0, 1, 2, 4, 5])
        """
        refuse_several(self, "forget")
        updates.forget(self, rows, data)
        return self

    def partial_fit(
        self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Any:
        """Fit to these rows and all earlier ones of `partial_fit`, from the last dual point.

        It means `update`: the result does not depend on how rows were cut into batches, other than
        within `tol`, and its certificate is one of all rows.  So the model keeps all of them.  A
        class that is new needs a fit from scratch to all rows, and until a second class has come,
        the model is not fitted.  `fit` forgets the rows of earlier calls.

        Parameters
        ----------
        X, y : array-like
            Rows and their targets.
        classes : array-like, optional
            Accepted, as other estimators need it, and not used.
        sample_weight : array-like, optional
            Weights of the rows.

        Returns
        -------
        self
            The model of all rows so far.

        Examples
        --------
        >>> import zerogap as zg
        >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
        >>> clf = zg.LinearClassifier("hinge", random_state=0)
        >>> for first in range(0, 1000, 250):
        ...     clf = clf.partial_fit(X[first : first + 250], y[first : first + 250])
        >>> clf.dual_coef_.shape, clf.certificate_.relative_gap <= 1e-3
        ((1, 1000), True)
        """
        self._seen = updates.partial_fit(self, X, y, sample_weight, self._seen)
        return self
