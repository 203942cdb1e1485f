"""
Wages, with intervals
=====================

A statistical office publishes how wages depend on schooling, age and hours. Readers want to know how sure the figures
are. Coefficients, their intervals and a prediction come out of one release.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import privfit as pf

plt.style.use("tableau-colorblind10")

people, _ = pf.datasets.load_census()

# %%
# What is public, and for whom
# ----------------------------
#
# The study is about people who work. ``where`` leaves the others out, inside the promise: how many there are stays
# private.

schema = pf.Schema(
    [
        pf.Numeric("age", 16, 80),
        pf.Numeric("education", 0, 20),
        pf.Numeric("hours", 0, 80),
        pf.Category("gender", ["female", "male"]),
        pf.Category("nativity", ["foreign", "native"]),
    ],
    target=pf.Numeric("income", 0, 150_000),
    where={"hours": (10, None)},
)

# %%
# One release
# -----------
#
# ``intervals=True`` takes the method whose release intervals can be computed from.

ledger = pf.Ledger(epsilon=2.0)
model = pf.LinearRegression(epsilon=1.0, intervals=True, schema=schema, ledger=ledger).fit(people)
names = model.get_feature_names_out()
low, high = model.coef_interval_.T
print(
    pl.DataFrame(
        {"column": names, "coefficient": model.coef_.round(), "from": low.round(), "to": high.round()},
        schema_overrides={"column": pl.String},
    )
)

# %%
# The interval of 90% counts both: that these people are a sample, and that noise was added.

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.hlines(range(len(names)), np.clip(low, -20_000, 20_000), np.clip(high, -20_000, 20_000), linewidth=3)
axes.plot(model.coef_, range(len(names)), "o")
axes.axvline(0, color="0.5", linewidth=0.8)
axes.set(yticks=range(len(names)), yticklabels=names, xlabel="dollars a year for each unit")
plt.show()

# %%
# Predictions have intervals too: of the mean wage of such people.

such = pl.DataFrame(
    {
        "age": [30, 50],
        "education": [12, 16],
        "hours": [40, 40],
        "gender": ["female", "male"],
        "nativity": ["native"] * 2,
    }
)
print(model.predict(such).round(), model.predict_interval(such).round(), sep="\n")

# %%
# A second look at the same people
# --------------------------------
#
# Wages are not a straight line in age. An additive model shows the curve. It is a second release and is paid for from
# the same budget.

curves = pf.AdditiveRegressor(epsilon=0.8, schema=schema, ledger=ledger).fit(people)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(curves.shapes_["age"].grid, curves.shapes_["age"].values)
axes.set(xlabel="age", ylabel="dollars a year, from the mean")
plt.show()
print(f"epsilon left: {ledger.remaining}")

# %%
# Publish both with their reports: ``curves.report_.to_html("wages.html", schema=curves.schema_, ledger=ledger)``.
# :doc:`/intervals` says how often such intervals hold the truth.
