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
# ``shapes_`` has a curve for each number and a value for each level, computed from what was released.

numbers = ["age", "education", "hours"]
figure, panels = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for panel, name in zip(panels, numbers, strict=True):
    shape = model.shapes_[name]
    panel.plot(shape.grid, shape.values)
    panel.axhline(0, color="0.7", linewidth=0.8)
    panel.set(xlabel=name)
panels[0].set(ylabel="dollars a year, from the mean")
plt.show()

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
