"""Weights for public rows, so that they stand for private ones: mechanisms of `pf.ImportanceWeights`.

Read them in this order:

- base.py: the problem (which rows are weighted) and what every fit of it provides: weights, notes for the report,
  variances, and the fit of a reference without noise.
- level_shares.py: weights that give public rows the released shares of levels; post-processing only.
- exponential_tilting.py: the mechanism that releases these shares, its sensitivity and its noise.
- density_ratio.py: Ji and Elkan's regression of private against public rows, with noise on its minimum or objective.
- variances.py: covariances of that regression, corrected.

The estimator is in publish/; the proofs are in docs/proofs/weights.md.
"""
