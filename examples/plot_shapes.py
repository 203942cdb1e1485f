"""
What shape has the effect of age?
=================================

Income rises with age, and falls again. A straight line cannot show that. What does an additive model show, at epsilon
1?
"""

import matplotlib.pyplot as plt
import numpy as np

import privfit as pf

plt.style.use("tableau-colorblind10")

people, schema = pf.datasets.load_census()
model = pf.AdditiveRegressor(epsilon=1.0, schema=schema).fit(people)

# %%
# Every column has a panel: a curve for a number, a dot for each level. Bands allow for the noise of privacy, whatever
# the table.

model.plot()

# %%
# ``shapes_`` has the same as numbers.

age = model.shapes_["age"]
for years, dollars in zip(age.grid, age.values, strict=True):
    print(f"{years:3.0f} {dollars:+9,.0f}")

# %%
# Which columns matter most, over their whole public range?

order = np.argsort(model.feature_importances_)
names = [schema.features[place].name for place in order]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.barh(names, model.feature_importances_[order])
axes.set(xlabel="importance")
plt.show()

# %%
# **Answer.** A hump: highest in the middle of a career. Hours and schooling matter most. Small wiggles are noise: fit
# again and they move.
