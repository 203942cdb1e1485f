"""
From a table to a report: the whole way
=======================================

A table with people in it, nobody knows how large incomes may be, and all that may ever be spent is epsilon 1. How does
one get to a model with its quality and its papers?
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import privfit as pf

folder = TemporaryDirectory()
people, schema = pf.datasets.load_census()
ledger = pf.Ledger(Path(folder.name) / "census.db", epsilon=1.0)

# %%
# **Bounds.** Ten million is surely enough, and far too much: noise would grow with it. A tenth of the budget buys
# bounds that hold about 99 of 100 incomes.

bought = pf.bounds(people, {"income": (0, 10_000_000)}, epsilon=0.1, ledger=ledger)
schema = schema.with_bounds(bought)
print(bought)

# %%
# **Plan.** What will the rest of the budget give? The plan reads the schema, not the table, and costs nothing.

plan = pf.plan(schema, 16_000, model="linear", epsilon=(0.1, 0.3, 0.9), mechanisms=["auto"])
print(plan)
plan.plot()

# %%
# **Fit and evaluate.** The ledger divides the people into a part to fit on and a part to evaluate on. Nobody is in
# both, so that both steps may spend 0.9 and cost 0.9 together.

parts = pf.holdout(people, ledger=ledger, schema=schema, share=0.3)
model = pf.LinearRegression(epsilon=0.9, schema=schema, ledger=ledger).fit(parts.fit)
found = pf.evaluate(model, parts.evaluate, epsilon=0.9, ledger=ledger)
print(found)

# %%
# **Report.** One page for those who decide about the release: what was promised, what was spent and by what.

page = model.report_.to_html(Path(folder.name) / "income.html", schema=schema, ledger=ledger)
print(model.report_)
for entry in ledger.entries():
    print(entry.model, entry.epsilon, entry.event.split_part or "whole table")
ledger.plot()

# %%
# **Answer.** Five steps and one ledger, which has nothing left:

print(ledger.spent, ledger.remaining)
folder.cleanup()
