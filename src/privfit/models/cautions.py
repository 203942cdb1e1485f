"""What qualifies a promise that holds: an epsilon or a delta so large that it protects little, and no ledger.

Everything here follows from public facts, so that neighbouring tables have the same cautions.
"""

from __future__ import annotations

from privfit.privacy import Amount, Event

WEAK_EPSILON = 10.0
"""Above this, a report says that the guarantee is weak: e^10 is a factor of 22,000 on a probability.

A larger limit would let
more pass for "yes"; a smaller one would cry wolf where delta and composition are what matters."""


def cautions(event: Event, public_rows: int | None, spent_without_ledger: Amount | None) -> tuple[str, ...]:
    """Sentences for the report of a private fit.

    Parameters
    ----------
    event : the release.
    public_rows : the number of rows as far as it is public: the true one under replace-one, a guess or None under
        add-remove.
    spent_without_ledger : what the process has spent without a ledger, where this fit was given none.
    """
    found = (of_epsilon(event.epsilon), of_delta(event, public_rows), of_no_ledger(spent_without_ledger))
    return tuple(caution for caution in found if caution)


def of_epsilon(epsilon: float) -> str:
    """The caution about a large epsilon, or nothing."""
    if epsilon <= WEAK_EPSILON:
        return ""
    return (
        f"epsilon {epsilon:g} is above {WEAK_EPSILON:g}: such a guarantee is weak, "
        f"because one person may change a probability by a factor of e^{epsilon:g}"
    )


def of_delta(event: Event, public_rows: int | None) -> str:
    """The caution about a delta above one over the number of rows, or nothing.

    A mechanism that publishes one row, drawn at random, exposes a person with m of n rows with probability m / n. So it
    is (0, m / n)-DP.
    """
    if public_rows is None or event.delta * public_rows <= 1:
        return ""
    keeps = event.delta * public_rows >= event.rows_per_person
    told = (
        "publishing one row at random, as it is, would satisfy it too"
        if keeps
        else "so large a chance to fail protects nobody in particular"
    )
    return f"delta {event.delta:g} is above 1 / {public_rows:,}, one over the number of rows: {told}"


def of_no_ledger(spent: Amount | None) -> str:
    """The caution about a fit without a ledger, or nothing."""
    if spent is None:
        return ""
    return (
        "no ledger was given: this fit was not charged to a budget that is kept; "
        f"fits without a ledger have spent epsilon {spent!r} in this process so far"
    )
