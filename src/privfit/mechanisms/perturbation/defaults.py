"""Constants of what perturbed objectives do where nobody says, from public facts alone: how numbers enter, how large
the ridge is, how classes share a row, how many interaction terms there are. The rules stand beside what uses them.

The constants steer accuracy, never privacy. Where `classifiers.py` is named, `python papers/experiments/classifiers.py`
measured the constant on 72 generated tables, and docs/classifiers.md has the figures.
"""

from __future__ import annotations

from privfit.mechanisms.base import USUAL_ROWS as USUAL_ROWS

# -- the split of epsilon --------------------------------------------------------------------------

FOR_CERTIFICATE = 0.005
"""The share of epsilon of the noise on the weights that covers what a solver leaves open. Less needs a more precise
solver or more ridge, more means more noise in the objective: 0.5% of it now. See docs/constants.md."""
FOR_GRADIENTS = 0.8
"""The share of the rest that gradients have where the log-determinant term costs something; the ridge is raised until
that costs no more than the remainder. A larger share means less noise and more ridge. See docs/constants.md."""
FLAT_ROWS = 0.5
"""The share of epsilon that Gaussian noise sets aside for the Hessian of rows without slope. A smaller one needs a
larger ridge, a larger one more noise. See docs/constants.md."""

# -- the loss --------------------------------------------------------------------------------------

AUTOMATIC_SLOPE = 0.5
"""The Lipschitz constant of the tempered logistic loss. Noise is proportional to it; below a half, rows at the decision
boundary would have smaller gradients too: classifiers.py --only steepest."""
MOST_TAPER = 50.0
"""A limit of that loss's self-bound, so that its smoothness stays bounded where the ridge is large. Chosen, not
measured."""
SOFTMAX_FROM = 3
"""Softmax is used from so many classes on, one class against the rest below: python papers/experiments/classes.py."""

# -- encoding and ridge ----------------------------------------------------------------------------

SLOPE_BELOW, FEWER_KNOTS = 30.0, ((100.0, 3), (200.0, 5))
"""Rows times epsilon per column below which a number has one slope, 3 knots and 5 knots; 8 from there on. More knots
have more noise, fewer more bias: python papers/experiments/few_rows.py."""
RIDGE_FACTOR = 5.0
"""The factor of `automatic_ridge`: a larger one shrinks effects, a smaller one keeps noise: classifiers.py --only
RIDGE_FACTOR."""
LEAST_RIDGE = 0.02
"""The least ridge, in units of four Hessians of a row: it keeps weights finite where noise is tiny. See
docs/constants.md."""
QUIET = 0.02
"""The ridge is raised until the noise for the solver's precision has at most this standard deviation on a weight, for
weights that are mostly below 1. See docs/constants.md."""
UNDONE = 0.5
"""The share of the estimated shrinkage that is undone: 0 is worse, 0.75 and 1 are no better, and rest more on the
estimate: classifiers.py --only undone."""
LEAST_STRETCH, MOST_STRETCH = 0.6, 1.25
"""Limits of the factor that undoes it, because the estimate takes levels as equally frequent. See docs/constants.md."""

# -- numbers: papers/experiments/regression.py --rule ---------------------------------------------------

REGRESSION_SLOPE_BELOW = 350.0
"""Rows times epsilon per column below which a number of an additive regression has one slope: python
papers/experiments/regression.py --real, where the generated census is at 333 for epsilon 0.1."""
OBJECTIVE_FROM = 1_000.0
"""Rows times epsilon, over rows per person, from which on a regression perturbs the objective: with fewer both are
mostly noise, and moments with their cautious repair are less often worse than the mean."""
MOMENTS_FROM = 1e5
"""The same, over columns and squared blocks, from which on moments are released after all: their noise is negligible
then, and they have no threshold. Chosen, not measured: far beyond the epsilons that are private."""

# -- interaction terms: classifiers.py --pairs --only interaction --------------------------------------

TERMS_FROM = (20_000, 40_000, 120_000)
"""Rows times epsilon from which on one, two and three interaction terms pay for their share of epsilon; three:
docs/classifiers.md."""
WORTH_BESIDE_GAUSSIAN, MOST_BESIDE_GAUSSIAN = 2, 2
"""Beside Gaussian noise pure steps cost less: half as many rows will do: classifiers.py --pairs --only delta. A third
term was not tried there."""

TWO_NUMBER_TERMS_FROM, FOUR_NUMBER_TERMS_FROM, TERMS_PER_COLUMN_FROM = 30_000, 60_000, 1_000
"""The same from which on two and four terms pay for theirs in a regression; and per column of the table, below which
none does: python papers/experiments/terms.py. Generated tables, in which pairs do interact, would have two from 20,000
on; there the census and CPS wages lose .001 of R2 by them."""

# -- the report ------------------------------------------------------------------------------------

NOISE_LIMIT = 0.3
"""A classifier is called dominated by noise above this relative noise. A larger limit misses more useless fits, a
smaller one calls more good ones so: 93% and 6% of them are called so at 0.3, on Adult all and none: python
papers/experiments/noise_limit.py."""
