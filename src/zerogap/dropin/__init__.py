"""How estimators with scikit-learn's names are fitted: see `zerogap.linear_model`."""
