"""Features that scikit-learn makes, models that zerogap certifies: one line per pipeline.

python examples/pipelines.py
"""

from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import zerogap as zg


def pipelines() -> dict[str, Pipeline]:
    def classifier() -> zg.LinearClassifier:
        return zg.LinearClassifier("logistic", lam=1e-3, tol=1e-4, random_state=0)

    landmarks = zg.transforms.GaussianLandmarks(n_landmarks=200, h=0.2, random_state=0)
    return {
        "scaled": make_pipeline(StandardScaler(), classifier()),
        "squares and products": make_pipeline(
            PolynomialFeatures(2, include_bias=False), StandardScaler(), classifier()
        ),
        "one principal component": make_pipeline(StandardScaler(), PCA(1), classifier()),
        "gaussian landmarks": make_pipeline(landmarks, classifier()),
    }


def main() -> None:
    print(f"{'data':14}{'features':26}{'test error':>12}{'gap / primal':>14}")
    for name in ("two-gaussians", "two-discs", "checkerboard"):
        data = zg.datasets.load(name).split(random_state=0)
        for features, pipeline in pipelines().items():
            pipeline.fit(data.X, data.y)
            error = 1.0 - pipeline.score(data.X_test, data.y_test)
            gap = pipeline[-1].certificate_.relative_gap
            print(f"{name:14}{features:26}{error:>12.1%}{gap:>14.1e}")


if __name__ == "__main__":
    main()
