"""
A team with one ledger
======================

Three people work on the same patients: Alice fits models, Bob counts for the yearly report, and an auditor checks. The
promise to the patients is about all of it together. One ledger adds up.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import privfit as pf

plt.style.use("tableau-colorblind10")

stays, schema = pf.datasets.load_patients()
folder = TemporaryDirectory()
here = Path(folder.name)

# %%
# The owner sets the budget
# -------------------------
#
# Once, for good. The file lies where all three can reach it; a team with several machines takes a PostgreSQL server
# instead, ``pf.Ledger("postgresql:///clinic?ledger=patients")``, with roles of their own: :doc:`/ledger`.

pf.Ledger(here / "patients.db", epsilon=2.0, owner="data protection office")

# %%
# Everybody opens it
# ------------------
#
# A note says who and what for.

alice = pf.Ledger(here / "patients.db").with_note("Alice: readmission study, approved as 2026-7")
bob = pf.Ledger(here / "patients.db").with_note("Bob: yearly report")

model = pf.LogisticRegression(epsilon=0.5, schema=schema, ledger=alice).fit(stays)
model.save(here / "readmission.json")
women = pf.count(stays, schema.features[1], "female", epsilon=0.05, ledger=bob)
days = pf.mean(stays, pf.Numeric("days", 0, 45), epsilon=0.1, ledger=bob)
print(f"stays of women: {float(women):,.0f}, days in hospital: {float(days):.1f}")

# %%
# What somebody releases with another tool is charged by hand:

bob.charge(0.2, mechanism="a table made with another tool", dataset="stays")

# %%
# Who spent what
# --------------

entries = list(pf.Ledger(here / "patients.db").entries())
spent = {}
for entry in entries:
    print(entry.note, entry.mechanism, float(entry.epsilon), sep=" | ")
    name = entry.note.partition(":")[0]
    spent[name] = spent.get(name, 0.0) + float(entry.epsilon)
ledger = pf.Ledger(here / "patients.db")
spent["left"] = float(ledger.remaining)

figure, axes = plt.subplots(figsize=(7, 1.8), layout="constrained")
start = 0.0
for (name, amount), colour in zip(spent.items(), ["C0", "C1", "0.85"], strict=True):
    axes.barh(0, amount, left=start, color=colour)
    axes.text(start + amount / 2, 0, f"{name}\n{amount:.2f}", ha="center", va="center")
    start += amount
axes.set(xlabel="epsilon", yticks=[], xlim=(0, 2))
plt.show()

# %%
# Nobody passes the budget
# ------------------------
#
# Not even two people at the same moment: a charge is written down before noise is drawn, and the second one waits.

try:
    pf.LogisticRegression(epsilon=1.5, schema=schema, ledger=alice).fit(stays)
except pf.BudgetExceeded as error:
    print(error)

# %%
# The auditor
# -----------
#
# Every entry is chained to the one before it. The receipt in a model shows whether this ledger paid for it.

print(ledger.verify())
receipt = pf.load_model(here / "readmission.json").report_.receipt
print({key: receipt[key] for key in list(receipt)[:3]})
folder.cleanup()

# %%
# On the command line: ``privfit ledger patients.db``, ``privfit ledger verify patients.db --against readmission.json``
# and ``privfit ledger export patients.db -o spent.csv``.
