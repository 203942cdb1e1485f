"""How well a private linear model can be learned, before anything is spent: arithmetic on public numbers.

`bounds.py` has the functions, and what their parameters mean; `printed.py` the same as a paper prints them, to compare;
`setting.py` the bounds that both rest on. Guarantee: docs/proofs/learning.md.
"""

from privfit.learning.bounds import best_ridge, excess_loss, noise_norm, regularised_excess, ridge_floor, rows_needed
from privfit.learning.printed import printed_noise_norm, printed_regularised_excess, printed_rows_needed

__all__ = [
    "best_ridge",
    "excess_loss",
    "noise_norm",
    "printed_noise_norm",
    "printed_regularised_excess",
    "printed_rows_needed",
    "regularised_excess",
    "ridge_floor",
    "rows_needed",
]
