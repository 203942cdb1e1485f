"""Time in whole periods, whatever happens within."""

from __future__ import annotations

import math

import pytest

import privfit as pf
from privfit.privacy import padding


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still unless something takes time: its only entry is now."""
    now = [100.0]
    monkeypatch.setattr(padding.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(padding.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


@pytest.mark.parametrize(("taken", "told"), [(0.0, 2.0), (0.1, 2.0), (1.9, 2.0), (2.0, 2.0), (2.1, 4.0), (7.0, 8.0)])
@pytest.mark.parametrize("refused", [False, True])
def test_what_is_done_ends_with_a_period_whether_it_succeeds_or_not(clock, taken, told, refused) -> None:
    try:
        with pf.padded(2):
            clock[0] += taken
            if refused:
                raise pf.DataError("a row")
    except pf.DataError:
        assert refused
    assert clock[0] - 100.0 == told


def test_an_interrupt_ends_at_once(clock) -> None:
    def interrupted() -> None:
        with pf.padded(1000):
            clock[0] += 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert clock[0] == 101.0


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, True, "1", None, 1e6])
def test_periods_that_mean_nothing_are_refused(seconds: object) -> None:
    with pytest.raises(pf.PrivacyError, match="positive number"), pf.padded(seconds):  # type: ignore[arg-type]
        pass


def test_a_real_clock_is_waited_for() -> None:
    import time

    start = time.monotonic()
    with pf.padded(0.2):
        pass
    assert time.monotonic() - start >= 0.2
