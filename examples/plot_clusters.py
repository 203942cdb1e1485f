"""
Which kinds of patients are there?
==================================

Can patients be grouped, and the groups shown to anybody, without showing a patient?
"""

import numpy as np

import privfit as pf

stays, _ = pf.datasets.load_patients()
schema = pf.Schema([pf.Numeric("age", 18, 105), pf.Numeric("days", 0, 45), pf.Numeric("medicines", 0, 25)])
model = pf.KMeans(4, epsilon=1.0, schema=schema).fit(stays)
centres = model.cluster_centers_[np.argsort(model.cluster_centers_[:, 0])]
print(np.round(centres, 1))

# %%
# Each line is a centre: a usual patient of a group.

model.plot()

# %%
# **Answer.** Yes: the centres are released, and nobody's group is. Groups differ in age first, because age fills its
# public range and days of a stay do not; give narrower bounds to a column that should count more.
