"""Importance weighting (Ji and Elkan, 2013): Figures 1 to 6."""
