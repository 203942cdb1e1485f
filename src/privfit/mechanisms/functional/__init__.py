"""The functional mechanism and its relatives: noise on the sums that a polynomial objective is made of.

Read in this order: `problem` (the quadratic objective, its plan, its fit, and the noise of its moments), `functional`
(moments with noise, repaired and minimised), `penalised` (its minimum with a penalty), `printed` (the papers'
constants), `defaults` (rules and constants that steer accuracy), `quadratic_logistic` (a quadratic in place of the
logistic loss), `polynomial` (objectives of higher degree), `penalty_selection` (a penalty chosen privately),
`intervals` (the bootstrap), `adassp` and `boosting` (adaptive ridge, and boosting of it), `budget_split` (shares of
epsilon), `second_moments` (means and covariances alone). Proofs: docs/proofs/moments.md, docs/proofs/polynomial.md,
docs/proofs/adassp.md and docs/proofs/pca.md.
"""
