"""Figures about a table: bounds, counts, means and quantiles.

Read them in this order:

- bounds.py: for every column a range that holds most of its values, selected from a public grid.
- questions.py: Summary, a mechanism that asks several questions about columns in one release.
- cells.py: the question how many rows levels or bins have.
- quantiles.py, means.py: quantiles and the mean of a number, with what their intervals are made of.
- numbers.py: the mean and quantiles of a number together, as `describe` asks for them.
- residuals.py: sums of residuals and of a target, clipped to ranges that are bought.
- crosstab.py: counts of the cells of several columns together.
- itemsets.py: sets of items that many rows hold, chosen one after the other, and their counts.
- survival.py: counts of events and censored times on a grid; survival_bands.py: the curves that follow from them.

What is counted, and what one row can change, stands in statistics/ranges.py and statistics/quantiles.py; the proofs are
in docs/proofs/bounds.md and docs/proofs/description.md. The functions that users call are in privfit/summaries/.
"""
