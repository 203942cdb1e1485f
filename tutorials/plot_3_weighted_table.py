"""
Publishing a weighted table
===========================

Many people will ask many questions of a register of patients. Answering each of them privately would use up any
budget. Instead, the register is opened once, to give weights to the rows of a table that is public anyway. Whoever
has the weighted table asks what they like.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.linear_model import LinearRegression

import privfit as pf

plt.style.use("tableau-colorblind10")

# %%
# Two tables
# ----------
#
# The private one is a census. The public one was collected in the street: too many young people and too few owners.

private, census = pf.datasets.load_census()
street = pf.datasets.generated_census(12_000, seed=11)
met = 0.9 * np.exp(-(street["age"].to_numpy() - 16) / 40) * np.where(street["dwelling"] == "owned", 0.6, 1.0)
public = street.filter(pl.Series(np.random.default_rng(0).random(street.height) < met))
print(private.height, public.height)

# %%
# One release
# -----------
#
# The schema says in what the tables may differ. Weights are learned for these columns, and income is one of them.

schema = pf.Schema([*census.features, census.target])
ledger = pf.Ledger(epsilon=1.0)
weights = pf.ImportanceWeights(epsilon=0.5, schema=schema, ledger=ledger).fit(private, public)
print(weights.report_)

# %%
# The table to publish
# --------------------

table = weights.to_frame()
folder = TemporaryDirectory()
table.write_csv(Path(folder.name) / "weighted.csv")
print(table.head(3))

# %%
# Any question, no further price
# ------------------------------
#
# A mean, a share and a regression, each from the table in the street, from the weighted one, and from the private one.


def effect_of_schooling(frame, weight=None):
    """Dollars a year for a year of school, with age held fixed."""
    columns = frame.select("education", "age").to_numpy()
    return LinearRegression().fit(columns, frame["income"].to_numpy(), sample_weight=weight).coef_[0]


weight = table["weight"].to_numpy()
questions = {
    "mean age": [
        public["age"].mean(),
        np.average(table["age"], weights=weight),
        private["age"].mean(),
    ],
    "share of owners": [
        (public["dwelling"] == "owned").mean(),
        np.average(table["dwelling"] == "owned", weights=weight),
        (private["dwelling"] == "owned").mean(),
    ],
    "dollars for a year of school": [
        effect_of_schooling(public),
        effect_of_schooling(table, weight),
        effect_of_schooling(private),
    ],
}
figure, panels = plt.subplots(1, 3, figsize=(9.5, 3), layout="constrained")
for panel, (question, answers) in zip(panels, questions.items(), strict=True):
    panel.bar(["street", "weighted", "private"], answers, color=["0.7", "C0", "C1"])
    panel.set(title=question)
plt.show()

# %%
# The weighted answers are nearer to the private ones. They are not the same: weights know the columns one by one, so
# what depends on a combination of columns comes out right only as far as the public rows have it right. How many rows
# of equal weight the table is worth says how noisy answers are:

print(f"{weights.effective_rows_:,.0f} of {public.height:,}")
folder.cleanup()

# %%
# More in :doc:`/publishing`.
