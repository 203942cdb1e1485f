"""
Can a public table stand for a private one?
===========================================

A survey of young people is public; the register of all people is private. Weights for the public rows, bought once,
make them look like the private ones. Do averages then come out right?
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import privfit as pf

plt.style.use("tableau-colorblind10")

private, whole = pf.datasets.load_census()
survey = pf.datasets.generated_census(15_000, seed=3)
keep = np.random.default_rng(0).random(survey.height) < np.exp(-(survey["age"].to_numpy() - 16) / 35)
public = survey.filter(pl.Series(keep))
schema = pf.Schema(whole.features)

# %%
# One release, at epsilon 0.5. Everything computed from the weighted table afterwards is free.

weights = pf.ImportanceWeights(epsilon=0.5, schema=schema).fit(private, public)
table = weights.to_frame()

# %%
# Three averages, in the survey, in the weighted survey, and in the private table (which only we may see):

names = ["age", "children", "hours"]
figure, panels = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for panel, name in zip(panels, names, strict=True):
    means = {
        "survey": public[name].mean(),
        "weighted": np.average(table[name], weights=table["weight"]),
        "private": private[name].mean(),
    }
    panel.bar(list(means), list(means.values()), color=["0.7", "C0", "C1"])
    panel.set(title=f"mean of {name}")
plt.show()
print(f"worth {weights.effective_rows_:,.0f} rows of equal weight, of {public.height:,}")

# %%
# **Answer.** As far as the schema's columns explain the difference, yes. The price is in the last line: a few rows get
# large weights, so the table is worth fewer rows than it has.
