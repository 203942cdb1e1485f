"""
Which coefficients can be believed?
===================================

A private coefficient has an error from noise and one from the sample. Which effects on income are surely there?
"""

import privfit as pf

people, schema = pf.datasets.load_census()

# %%
# ``intervals=True`` keeps what intervals need. They cost nothing more.

small = pf.LinearRegression(0.2, schema=schema, intervals=True).fit(people)
small.plot()

# %%
# Ten times the budget:

large = pf.LinearRegression(2.0, schema=schema, intervals=True).fit(people)
large.plot()

# %%
# **Answer.** Those in colour, whose 90% interval does not hold zero. More of them at the larger epsilon: with less
# noise, smaller effects can be seen. A grey coefficient may be no effect, or no budget to see one.
