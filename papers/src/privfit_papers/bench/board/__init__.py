"""A board of peers: every method that can be installed beside privfit, on the same splits, with the same privacy."""
