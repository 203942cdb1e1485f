"""Errors in three beats: what was given, what is needed, what to do."""

from __future__ import annotations

from collections.abc import Sequence


def assert_told_in_order(message: str, beats: Sequence[str]) -> None:
    """Every beat is in the message, one after the other."""
    places = [message.find(beat) for beat in beats]
    assert -1 not in places, message
    assert places == sorted(places), message
