"""Refusals of the privacy core. Each is raised before any noise is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privfit.privacy.budget import Amount


class PrivacyError(ValueError):
    """A request for which no guarantee can be given.

    See Also
    --------
    BudgetExceeded : A guarantee that the budget does not allow.
    PrivacyWarning : A guarantee that may be weaker than it looks.
    """


class LedgerError(RuntimeError):
    """A ledger that cannot be trusted: missing, unreadable, damaged or not the one that was expected.

    See Also
    --------
    Ledger.verify : Checks a whole ledger.
    """


class BudgetExceeded(LedgerError):
    """The ledger has less left than was asked for. Nothing was charged and nothing was drawn.

    `remaining` is what is left: an epsilon that also knows its delta.

    See Also
    --------
    Ledger : The budget.
    """

    remaining: Amount


class PrivacyWarning(UserWarning):
    """Something is private, but perhaps not as private as the caller believes.

    See Also
    --------
    Report : Lists the same cautions for a fit.
    """
