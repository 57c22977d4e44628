"""
Telling two topics apart by their words
=======================================

Texts become sparse rows; the words with the largest weights say what was learnt. (Sentences are
made up here, so that nothing has to be downloaded; `zg.datasets.load("basehock")` has baseball
and hockey from 20 newsgroups.)
"""

import matplotlib.pyplot as plt
import numpy as np

import zerogap as zg

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"  # Okabe and Ito's palette

from sklearn.feature_extraction.text import TfidfVectorizer

rng = np.random.default_rng(0)
words = {
    "sea": ["ship", "sail", "harbour", "tide", "wave", "anchor", "captain", "deck"],
    "kitchen": ["bread", "oven", "salt", "pan", "flour", "butter", "knife", "soup"],
}
common = ["the", "a", "of", "and", "with", "near", "old", "new"]
texts, topics = [], []
for _ in range(300):
    topic = rng.choice(["sea", "kitchen"])
    texts.append(" ".join([*rng.choice(words[topic], 3), *rng.choice(common, 6)]))
    topics.append(topic)
vectors = TfidfVectorizer()
X = vectors.fit_transform(texts)
model = zg.LinearClassifier("hinge", lam=1e-3).fit(X, topics)
order = np.argsort(model.coef_[0])
names = vectors.get_feature_names_out()

figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
axes.barh(
    names[order], model.coef_[0][order], color=np.where(model.coef_[0][order] > 0, BLUE, ORANGE)
)
left, right = model.classes_
axes.set_xlabel(f"weight: negative speaks for {left}, positive for {right}")
plt.show()
