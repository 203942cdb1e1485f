"""
A hospital's readmission model
==============================

A hospital wants to know which patients come back within 30 days, and to hand the model to other hospitals. Patients
have a right that the model gives nothing of them away. This takes five steps: state what is public, set a budget, look
ahead, fit, and hand over with a report.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import privfit as pf

plt.style.use("tableau-colorblind10")

stays, _ = pf.datasets.load_patients()
folder = TemporaryDirectory()
here = Path(folder.name)
stays.write_parquet(here / "stays.parquet")

# %%
# 1. What is public
# -----------------
#
# Noise is computed from what you write here and from nothing else. Bounds come from knowledge: a hospital for adults,
# wards that exist, a form with at most 25 medicines. Values outside are clipped, and a value that is missing needs a
# rule. A patient can have several stays, so the schema names the column that says whose stay it is.

schema = pf.Schema(
    [
        pf.Numeric("age", 18, 105),
        pf.Category("sex", ["female", "male"]),
        pf.Category("ward", ["internal", "surgery", "cardiology", "neurology", "geriatrics"], other=True),
        pf.Category("emergency", ["no", "yes"]),
        pf.Numeric("earlier_stays", 0, 20),
        pf.Numeric("days", 0, 45),
        pf.Numeric("medicines", 0, 25),
        pf.Numeric("haemoglobin", 4, 20, fill="missing"),
    ],
    target=pf.Category("readmitted", ["no", "yes"]),
    person="patient_id",
)
schema.save(here / "stays.toml")

# %%
# 2. A budget
# -----------
#
# The ledger holds all that may ever be spent on these patients. Whoever is responsible for the data decides on it.

ledger = pf.Ledger(here / "patients.db", epsilon=1.0, owner="clinic statistics")

# %%
# 3. A look ahead, for free
# -------------------------
#
# What can be expected of which epsilon? A plan fits generated tables and does not open yours.

plan = pf.plan(schema, 10_000, model="logistic", epsilon=(0.1, 0.5), mechanisms=("auto",), repetitions=2)
print(plan)

# %%
# 4. The fit
# ----------
#
# The budget is charged before noise is drawn. Errors in the data are found before that and cost nothing.

model = pf.LogisticRegression(epsilon=0.5, schema=schema, ledger=ledger.with_note("readmission study"))
model.fit(here / "stays.parquet")
print(model.report_)

# %%
# How good is it? A score on private rows is private information too, and has a price. These patients are made up, so
# we may look at more of them.

others = pf.datasets.generated_patients(3_000, seed=1)
likely = model.predict_proba(others)[:, 1]
truth = (others["readmitted"] == "yes").to_numpy()
print(f"area under the ROC curve: {roc_auc_score(truth, likely):.3f}")

# %%
# Do patients who are given a high probability come back more often?

tenth = np.quantile(likely, np.linspace(0, 1, 11))
place = np.clip(np.searchsorted(tenth, likely, side="right") - 1, 0, 9)
expected = [likely[place == at].mean() for at in range(10)]
seen = [truth[place == at].mean() for at in range(10)]
figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
axes.plot([0, 0.7], [0, 0.7], color="0.7")
axes.plot(expected, seen, "o-")
axes.set(xlabel="probability that the model gives", ylabel="share that came back", aspect="equal")
plt.show()

# %%
# 5. Hand it over
# ---------------
#
# The file has no row of the table in it. The page beside it says what was promised, and how to check that.

model.save(here / "readmission.json")
model.report_.to_html(here / "readmission.html", schema=model.schema_, ledger=ledger)
loaded = pf.load_model(here / "readmission.json")
print(np.round(loaded.predict_proba(others.head(3)), 2))
print(ledger.remaining)

# %%
# What is left can pay for something else: a yearly count, or a better model. When it is gone, it is gone.
# :doc:`/sharp-edges` lists what can go wrong although every fit is private.

folder.cleanup()
