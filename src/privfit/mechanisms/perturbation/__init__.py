"""Perturbed objectives and perturbed minima: regularised fits of any convex loss that states its constants.

Read in this order: `problem` (what is minimised, its plan, its fit), `base` (what both mechanisms share: which kind of
noise is planned), `objective` (noise in the objective) and `output` (noise on the minimum). Then what they rest on:
`objective_noise` and `gaussian_noise` (how large noise has to be, and what is drawn), `precision` (how near its minimum
a solver comes for every table, and its call), `interaction_terms` (tables for pairs of columns after the weights) and
`defaults` (every rule and constant that steers accuracy). `regression` fits numbers: `target_scale` chooses a centre
and a threshold, `penalty_matrix` shrinks effects; `bought_moments` has what intervals are made
of, and `sandwich` what follows.
`tuning` chooses among settings privately; `balanced` weighs classes alike; `printed_erm` and `printed_svm` have the
constants of two papers.
Proofs: docs/proofs/perturbation.md, docs/proofs/pairs.md and docs/proofs/regression-objective.md.
"""
