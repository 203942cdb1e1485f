"""A release: all that a model may be built from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from privfit.privacy import Event

Value = TypeVar("Value")


@dataclass(frozen=True)
class Release(Generic[Value]):
    """A noisy value and the event that paid for it."""

    value: Value
    event: Event
    private: bool
    choice: int | None = None
    """Which of several public candidates was chosen, where there was a choice."""
