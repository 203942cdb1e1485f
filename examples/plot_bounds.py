"""
What do bounds that are too wide cost?
======================================

Bounds must be public. Suppose that nobody knows how high incomes can be. Which is better: a bound that is surely high
enough, or one that is bought with a part of the budget?
"""

import matplotlib.pyplot as plt
import numpy as np

import privfit as pf

plt.style.use("tableau-colorblind10")

people, schema = pf.datasets.load_census()
fitted, others = people.head(16_000), people.tail(4_000)
income = others["income"].to_numpy()


def explained(target, epsilon):
    """The share of variance that moments with noise explain, mean of five fits."""
    wanted = schema.with_target(target)
    fits = [pf.Ridge(epsilon, schema=wanted, mechanism="functional").fit(fitted) for _ in range(5)]
    return np.mean([1 - np.mean((income - fit.predict(others)) ** 2) / np.var(income) for fit in fits])


# %%
# A tenth of the budget buys the bound, from a public range that is generous:

bought = pf.bounds(fitted, {"income": (0, 10_000_000)}, epsilon=0.1)
print(bought)

# %%
# The rest of the budget fits the model with it. The others fit with the whole budget.

choices = {
    "known: 150,000": explained(pf.Numeric("income", 0, 150_000), 1.0),
    "generous: 10,000,000": explained(pf.Numeric("income", 0, 10_000_000), 1.0),
    "bought for 0.1 of 1.0": explained(pf.Numeric("income", *bought["income"]), 0.9),
}
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
bars = axes.barh(list(choices), np.maximum(list(choices.values()), 0))
axes.bar_label(bars, [f"{value:.2f}" for value in choices.values()], padding=4)
axes.set(xlabel="share of variance explained (bars: 0 or more)", xlim=(0, 0.7))
axes.invert_yaxis()
plt.show()

# %%
# **Answer.** Buy it. Noise is in proportion to the bounds, so a generous bound can leave nothing but noise, while a
# bought one is as good as a known one, or better where the known one is higher than costs usually are.
