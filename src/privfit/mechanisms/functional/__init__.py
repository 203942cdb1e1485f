"""The functional mechanism and its relatives: noise on the sums that a polynomial objective is made of.

Read in this order: `functional` (moments with noise, repaired and minimised), `polynomial` (objectives of higher
degree), `penalty_selection` (a penalty chosen privately), `intervals` (the bootstrap), `adassp` (adaptive ridge, and
boosting of it), `budget_split` (shares of epsilon). Proofs: docs/proofs/moments.md, docs/proofs/polynomial.md and
docs/proofs/adassp.md.
"""
