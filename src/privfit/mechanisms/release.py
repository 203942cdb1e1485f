"""A release: all that a model may be built from; and the refusal to have a release paid that is not private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from privfit.privacy import Event, Ledger, Noise, PrivacyError

Value = TypeVar("Value")

SEEDED = "the noise comes from a source that is not secret, so that it can be repeated and subtracted"


@dataclass(frozen=True)
class Release(Generic[Value]):
    """A noisy value and the event that paid for it."""

    value: Value
    event: Event
    private: bool
    choice: int | None = None
    """Which of several public candidates was chosen, where there was a choice."""


def refuse_ledger(ledger: Ledger | None, reasons: tuple[str, ...]) -> None:
    """A ledger takes private releases only: refuse one where there are reasons why a release is not, before anything is read."""
    if ledger is not None and reasons:
        raise PrivacyError(
            f"A ledger was given to a fit that is not private ({'; '.join(reasons)}). A ledger takes private fits only: "
            "mend what is named (leave out random_state or the seed of the noise, give a schema of public facts, use calibration='tight'), "
            "or leave out the ledger. Nothing was charged."
        )


def check_ledger(ledger: Ledger | None, noise: Noise, reasons: tuple[str, ...] = ()) -> None:
    """The first step of every mechanism's `release`: refuse a ledger for noise that is not secret, or for other reasons of
    the mechanism why its release is not private. Models refuse the same earlier; mechanisms can be used without them."""
    refuse_ledger(ledger, reasons if noise.private else (SEEDED, *reasons))
