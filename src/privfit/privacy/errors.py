"""Refusals of the privacy core. Each is raised before any noise is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privfit.privacy.budget import Amount


class PrivacyError(ValueError):
    """A request that no guarantee could be given for."""


class LedgerError(RuntimeError):
    """A ledger that cannot be trusted to remember: missing, unreadable, damaged or not this one."""


class BudgetExceeded(LedgerError):
    """The ledger has less left than was asked for. Nothing was charged and nothing was drawn.

    `remaining` is what is left: an epsilon that also knows its delta.
    """

    remaining: Amount


class PrivacyWarning(UserWarning):
    """Something is private, but perhaps not as private as the caller believes."""
