"""Asking a ledger while a table is still unread: one that passes by once is used up when its rows are counted."""

from __future__ import annotations

from typing import Any

from privfit.mechanisms.base import AnyMechanism, PublicFacts
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters
from privfit.rows import Rows


def refuse_unread(
    ledger: Ledger | None, mechanism: AnyMechanism, problem: Any, rows: Rows, parameters: PrivacyParameters
) -> None:
    """Refuse what a ledger cannot pay for, by a plan for a usual number of rows; a plan that is refused for so many may
    hold for as many as there are, so that nothing is said of it yet.
    """
    if ledger is None:
        return
    try:
        event = rows.stated(mechanism.plan(PublicFacts.before_reading(rows, parameters), problem).event, parameters)
    except PrivacyError:
        return
    ledger.check(event)
