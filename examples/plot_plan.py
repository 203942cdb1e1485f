"""
Which epsilon should I ask for?
===============================

Before any budget is spent: what score can a model of readmissions reach, at which epsilon?
"""

import matplotlib.pyplot as plt

import privfit as pf

plt.style.use("tableau-colorblind10")

# %%
# A plan needs the schema and a number of rows. It generates tables and fits them; the private table is not opened.

schema = pf.datasets.patients_schema()
plan = pf.plan(schema, 8_000, model="logistic", epsilon=(0.1, 0.4, 1.6), mechanisms=("auto", "output"), repetitions=2)
print(plan)

# %%
# The same as a picture:

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for mechanism, mark in (("auto", "o"), ("output", "s")):
    cells = [cell for cell in plan.forecasts if cell.mechanism == mechanism]
    axes.plot([cell.epsilon for cell in cells], [cell.score for cell in cells], marker=mark, label=mechanism)
axes.set(xscale="log", xlabel="epsilon", ylabel="expected score")
axes.legend()
plt.show()

# %%
# **Answer.** The smallest epsilon whose forecast you can live with. A forecast is for generated rows: your own may be
# easier or harder to predict, and :doc:`/planning` says how far off forecasts were.
