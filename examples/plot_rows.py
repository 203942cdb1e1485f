"""
How many rows are enough?
=========================

Noise does not depend on the number of rows, but what it is added to grows with them. How many people does a regression
need at epsilon 0.5?
"""

import matplotlib.pyplot as plt
import numpy as np

import privfit as pf

plt.style.use("tableau-colorblind10")

schema = pf.datasets.census_schema()
people = pf.datasets.generated_census(65_000, seed=7)
others = people.tail(5_000)
income = others["income"].to_numpy()

# %%
# The same people, more and more of them, at two epsilons:

rows = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for epsilon, line in ((0.1, "--"), (0.5, "-")):
    scores = []
    for count in rows:
        fits = [pf.LinearRegression(epsilon, schema=schema).fit(people.head(count)) for _ in range(2)]
        scores.append(np.mean([1 - np.mean((income - fit.predict(others)) ** 2) / np.var(income) for fit in fits]))
    axes.plot(rows, np.maximum(scores, 0), line, marker="o", label=f"epsilon {epsilon}")
axes.set(xscale="log", xlabel="rows", ylabel="share of variance explained (0 or more)")
axes.legend()
plt.show()

# %%
# **Answer.** At epsilon 0.5 a few thousand people are enough for these twelve columns; at 0.1 it takes about five times
# as many. What counts is rows times epsilon. ``pf.plan`` makes such a forecast for a schema of your own, without
# opening the private table: :ref:`sphx_glr_gallery_plot_plan.py`.
