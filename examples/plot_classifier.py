"""
Does a private classifier rank people as well?
==============================================

A hospital wants to call patients who are likely to come back within 30 days. Does a private logistic regression order
patients as well as one without privacy?
"""

import matplotlib.pyplot as plt
from sklearn.metrics import roc_auc_score, roc_curve

import privfit as pf

plt.style.use("tableau-colorblind10")

stays, schema = pf.datasets.load_patients()
others = pf.datasets.generated_patients(3_000, seed=1)
truth = (others["readmitted"] == "yes").to_numpy()

# %%
# An epsilon of a million is no privacy at all: the same model without noise to speak of.

figure, axes = plt.subplots(figsize=(5.5, 5), layout="constrained")
for epsilon, line in ((0.1, ":"), (0.5, "--"), (1_000_000, "-")):
    model = pf.LogisticRegression(epsilon, schema=schema).fit(stays)
    likely = model.predict_proba(others)[:, 1]
    wrong, right, _ = roc_curve(truth, likely)
    name = "no privacy" if epsilon > 1000 else f"epsilon {epsilon}"
    axes.plot(wrong, right, line, label=f"{name}: area {roc_auc_score(truth, likely):.3f}")
axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
axes.set(xlabel="called, but did not come back", ylabel="called, and came back", aspect="equal")
axes.legend(loc="lower right")
plt.show()

# %%
# **Answer.** At epsilon 0.5 it ranks nearly as well. At 0.1 it is still far better than calling people at random. The
# curves here are drawn from made-up patients; from your own rows such a curve is private information and has a price.
