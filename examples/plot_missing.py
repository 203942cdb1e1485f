"""
What to do with missing values?
===============================

A laboratory value is missing for every sixth stay, and more often for planned stays than for emergencies. A private fit
needs a public rule for them. Which one is best?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import privfit as pf

plt.style.use("tableau-colorblind10")

stays, schema = pf.datasets.load_patients()
fitted, others = stays.head(12_000), stays.tail(3_000)
print(stays["haemoglobin"].null_count() / stays.height)

# %%
# Three public rules: a usual value, the lower bound, or an indicator of its own.


def auc(fill):
    """The area under the curve on other stays, mean of three fits; rows may be looked at, for they are made up."""
    features = [
        pf.Numeric("haemoglobin", 4, 20, fill=fill) if column.name == "haemoglobin" else column
        for column in schema.features
    ]
    ours = pf.Schema(features, schema.target)
    truth = (others["readmitted"] == "yes").to_numpy()
    fits = [pf.LogisticRegression(0.5, schema=ours).fit(fitted) for _ in range(3)]
    return np.mean([roc_auc_score(truth, fit.predict_proba(others)[:, 1]) for fit in fits])


scores = {"fill=13.5": auc(13.5), "fill=4": auc(4), 'fill="missing"': auc("missing")}
figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
bars = axes.barh(list(scores), list(scores.values()))
axes.bar_label(bars, fmt="%.3f", padding=4)
axes.set(xlabel="area under the ROC curve", xlim=(0.5, 0.8))
axes.invert_yaxis()
plt.show()

# %%
# **Answer.** The three are close, because numbers enter as splines, which can treat a value at the end of the range
# differently. ``fill="missing"`` needs no guess and costs hardly any noise: take it unless you know a usual value. A
# row without a value in a column that has no ``fill`` is an error, before anything is charged.
