"""
How are costs distributed?
==========================

A histogram of a private column is a handful of counts. How much noise do they have, and how sure is each bar?
"""

import matplotlib.pyplot as plt
import numpy as np

import privfit as pf

plt.style.use("tableau-colorblind10")

stays, schema = pf.datasets.load_patients("cost")
edges = list(range(1_000, 12_001, 1_000))
costs = pf.Numeric("cost", 0, 13_000, bins=edges)

# %%
# All bars are bought together: a stay is in one bar only, so epsilon is paid once.

figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
for panel, epsilon in zip(panels, (0.01, 0.1), strict=True):
    bars = pf.histogram(stays, costs, epsilon=epsilon)
    counts, interval = np.asarray(bars), np.asarray(bars.interval)
    below, above = counts - interval[:, 0], interval[:, 1] - counts
    panel.bar(range(len(counts)), counts, yerr=np.maximum([below, above], 0), capsize=3)
    panel.set(title=f"epsilon {epsilon}", xlabel="cost in thousands of euros, from")
panels[0].set(ylabel="stays")
plt.show()

# %%
# **Answer.** At epsilon 0.1 the noise is a few dozen stays, whatever the bar: large bars are exact for all purposes,
# small ones are not. Merge rare cells before you buy them.
