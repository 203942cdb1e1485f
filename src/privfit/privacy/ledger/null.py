"""No ledger: what a release that nobody accounts for is charged to."""

from __future__ import annotations

from privfit.privacy.event import Event


class NullLedger:
    """Accepts every event and keeps none: for fits that are not private, and for releases that are tried out."""

    def check(self, event: Event) -> None:
        """Any event can be paid."""

    def charge(self, event: Event, *, dataset: str = "") -> None:
        """Keep nothing."""
