"""Regularised linear regression (Dandekar et al., 2018): Figures 1 to 3."""
