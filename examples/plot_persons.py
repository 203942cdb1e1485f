"""
How many rows of a person should count?
=======================================

Patients have one to six stays. The promise is to patients, not to stays: noise grows with the number of stays that may
count for a patient, and stays beyond it are left out. How many should that be?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import privfit as pf

plt.style.use("tableau-colorblind10")

stays, schema = pf.datasets.load_patients()
others = pf.datasets.generated_patients(3_000, seed=1)
truth = (others["readmitted"] == "yes").to_numpy()
print(schema.person)

# %%
# The schema names the person column, so a patient's further stays are left out, chosen at random.

counts = [1, 2, 3, 6]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for epsilon, line in ((0.2, "--"), (1.0, "-")):
    scores = []
    for most in counts:
        fits = [pf.LogisticRegression(epsilon, schema=schema, rows_per_person=most).fit(stays) for _ in range(3)]
        scores.append(np.mean([roc_auc_score(truth, fit.predict_proba(others)[:, 1]) for fit in fits]))
    axes.plot(counts, scores, line, marker="o", label=f"epsilon {epsilon}")
axes.set(xlabel="rows_per_person", ylabel="area under the ROC curve", xticks=counts)
axes.legend()
plt.show()

# %%
# **Answer.** One. Most patients have a single stay, so a second one adds few rows and doubles the noise. Take more only
# where persons have about the same number of rows and the rows of a person differ. Decide from what you know of the
# table, never by counting.
