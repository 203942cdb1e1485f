"""
What do well-paid and badly paid people earn, by age?
=====================================================

A mean hides how unequal incomes are. Can a private model show the tenth, the middle and the ninetieth of a hundred?
"""

import matplotlib.pyplot as plt
import numpy as np

import privfit as pf

plt.style.use("tableau-colorblind10")

people, _ = pf.datasets.load_census()
working = people.filter(people["hours"] >= 30)
schema = pf.Schema([pf.Numeric("age", 16, 95), pf.Numeric("education", 0, 20)], target=pf.Numeric("income", 0, 150_000))

# %%
# Three models share an epsilon of 1.5, a third each. A ledger adds them up.

ledger = pf.Ledger(epsilon=1.5)
ages = np.arange(20, 66)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(working["age"][:1500], working["income"][:1500], ".", color="0.85", markersize=3)
for quantile, line in ((0.9, "-."), (0.5, "-"), (0.1, "--")):
    model = pf.QuantileRegressor(0.5, quantile=quantile, schema=schema, ledger=ledger).fit(working)
    schooling = np.full(len(ages), 12)
    axes.plot(ages, model.predict(np.column_stack([ages, schooling])), line, label=f"{quantile:.0%} earn less")
axes.set(xlabel="age", ylabel="income with 12 years of school", ylim=(0, 120_000))
axes.legend(loc="upper left")
plt.show()
print(ledger.remaining)

# %%
# **Answer.** Yes. Incomes spread as people grow older: the upper line rises faster than the lower one. The grey points
# may be shown only because these people are made up.
