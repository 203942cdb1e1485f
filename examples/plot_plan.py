"""
Which epsilon should I ask for?
===============================

Before any budget is spent: what score can a model of readmissions reach, at which epsilon?
"""

import privfit as pf

# %%
# A plan needs the schema and a number of rows. It generates tables and fits them; the private table is not opened.

schema = pf.datasets.patients_schema()
plan = pf.plan(schema, 8_000, model="logistic", epsilon=(0.1, 0.4, 1.6), mechanisms=("auto", "output"), repetitions=2)
print(plan)

# %%
# The same as a picture:

plan.plot()

# %%
# **Answer.** The smallest epsilon whose forecast you can live with. A forecast is for generated rows: your own may be
# easier or harder to predict, and :doc:`/planning` says how far off forecasts were.
