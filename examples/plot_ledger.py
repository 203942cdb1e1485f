"""
What happens when the budget ends?
==================================

A ledger holds all that may ever be spent on the people of a table. What does it record, and what does a fit that it
cannot pay for do?
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import privfit as pf

people, schema = pf.datasets.load_census()
folder = TemporaryDirectory()
ledger = pf.Ledger(Path(folder.name) / "people.db", epsilon=1.0, owner="statistics")

# %%
# Releases of a year, by two people who know nothing of each other:

wages, families = ledger.with_note("wage study"), ledger.with_note("family survey")
pf.describe(people, schema, epsilon=0.2, ledger=families)
pf.LinearRegression(0.3, schema=schema, ledger=wages).fit(people)
pf.count(people, schema.features[1], "female", epsilon=0.05, ledger=families)
pf.Lasso(0.3, schema=schema, ledger=wages).fit(people)
print(ledger.spent, ledger.remaining)

# %%
# One more fit would pass the budget. It is refused before a single bit of noise is drawn.

try:
    pf.LinearRegression(0.3, schema=schema, ledger=wages).fit(people)
except pf.BudgetExceeded as error:
    print(error)

# %%
# Every entry says what was paid for, and when:

for entry in ledger.entries():
    print(entry.id, entry.note, entry.model or entry.mechanism, entry.epsilon)
ledger.plot()

# %%
# **Answer.** The fit ends with ``BudgetExceeded`` and nothing is released or charged. Whoever fits first is served
# first; budgets of projects are in :doc:`/ledger`.

folder.cleanup()
