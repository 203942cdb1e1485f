"""
Which coefficients can be believed?
===================================

A private coefficient has an error from noise and one from the sample. Which effects on income are surely there?
"""

import matplotlib.pyplot as plt
import numpy as np

import privfit as pf

plt.style.use("tableau-colorblind10")

people, schema = pf.datasets.load_census()

# %%
# ``intervals=True`` keeps what intervals need. They cost nothing more.

figure, panels = plt.subplots(1, 2, figsize=(9, 4.5), sharey=True, layout="constrained")
for panel, epsilon in zip(panels, (0.2, 2.0), strict=True):
    model = pf.LinearRegression(epsilon, schema=schema, intervals=True).fit(people)
    names = model.get_feature_names_out()
    low, high = np.clip(model.coef_interval_.T, -40_000, 40_000)
    sure = (low > 0) | (high < 0)
    for place, _name in enumerate(names):
        panel.plot([low[place], high[place]], [place, place], color="C0" if sure[place] else "0.7", linewidth=3)
        panel.plot(model.coef_[place], place, "o", color="C0" if sure[place] else "0.7")
    panel.axvline(0, color="0.3", linewidth=0.8)
    panel.set(yticks=range(len(names)), yticklabels=names, title=f"epsilon {epsilon}", xlabel="dollars for each unit")
plt.show()

# %%
# **Answer.** Those in colour, whose 90% interval does not hold zero. More of them at the larger epsilon: with less
# noise, smaller effects can be seen. A grey coefficient may be no effect, or no budget to see one.
