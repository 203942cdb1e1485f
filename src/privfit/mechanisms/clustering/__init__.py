"""Private k-means: centres from noisy counts and sums.

Read in this order:

- schedule.py: the queries of a fit, what each may cost and its noise, from public facts alone.
- clustering.py: what all mechanisms of k-means share, and block sums, the query that most of them ask.
- grid.py: a noisy grid, alone or with one of Lloyd's steps: for few columns.
- cell_means.py: noisy means of many cells and Lloyd's steps: for many columns; DPLloyd; and the rule that chooses.
- centres.py: centres from what was released, and from public randomness.
- named.py: all mechanisms by name, with those of genetic/ and aggregation/.
"""
