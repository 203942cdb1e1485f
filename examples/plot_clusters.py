"""
Which kinds of patients are there?
==================================

Can patients be grouped, and the groups shown to anybody, without showing a patient?
"""

import matplotlib.pyplot as plt
import numpy as np

import privfit as pf

plt.style.use("tableau-colorblind10")

stays, _ = pf.datasets.load_patients()
schema = pf.Schema([pf.Numeric("age", 18, 105), pf.Numeric("days", 0, 45), pf.Numeric("medicines", 0, 25)])
model = pf.KMeans(4, epsilon=1.0, schema=schema).fit(stays)
centres = model.cluster_centers_[np.argsort(model.cluster_centers_[:, 0])]
print(np.round(centres, 1))

# %%
# Each line is a centre: a usual patient of a group.

names = [column.name for column in schema.features]
low = np.array([column.low for column in schema.features])
high = np.array([column.high for column in schema.features])
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for place, centre in enumerate(centres):
    label = ", ".join(f"{name} {value:.0f}" for name, value in zip(names, centre, strict=True))
    axes.plot(names, (centre - low) / (high - low), marker="os^D"[place], label=label)
axes.set(ylabel="place within the public bounds", ylim=(0, 1))
axes.legend()
plt.show()

# %%
# **Answer.** Yes: the centres are released, and nobody's group is. Groups differ in age first, because age fills its
# public range and days of a stay do not; give narrower bounds to a column that should count more.
