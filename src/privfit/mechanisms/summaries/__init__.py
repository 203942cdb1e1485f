"""Figures about a table: bounds, counts, means and quantiles.

Read them in this order:

- bounds.py: for every column a range that holds most of its values, selected from a public grid.

What is counted, and what one row can change, stands in statistics/ranges.py; the proofs are in docs/proofs/bounds.md.
The functions that users call are in privfit/summaries/.
"""
