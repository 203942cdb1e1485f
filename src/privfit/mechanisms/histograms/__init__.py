"""Counts of cells, and values row by row, with noise: mechanisms that publish a table rather than fit a model.

Read them in this order:

- noisy_histogram.py: noise on the count of every cell of a contingency table (DPME). What is counted, and what one row
  can change, stands here.
- filtered_sample.py: the cells whose noisy count passes a threshold, without ever listing the empty ones, and a
  priority sample of them (Filter-Priority).
- open_levels.py: the levels of a column that nobody has listed, where a threshold makes that safe, at a delta.
- class_counts.py: noisy counts of the classes of a target.
- noisy_values.py: every value of a table with noise of its own.

The estimators are in publish/ and baselines/; the proofs in docs/proofs/histograms.md and
docs/proofs/open-levels.md.
"""
