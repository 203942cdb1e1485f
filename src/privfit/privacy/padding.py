"""Time in whole periods: what can be learned from when a fit ends, made small."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from privfit.privacy.errors import PrivacyError

LONGEST = 86_400.0
"""Seconds of a period: a day. Chosen, not measured."""


@contextmanager
def padded(seconds: float) -> Iterator[None]:
    """Let what is done within end at the end of a period, whether it succeeds or is refused.

    How long a fit takes can depend on rows. Whoever sees when it ends learns the number of periods alone: nothing, if
    all fits of a kind take less than one. It costs waiting, of less than one period. The processor's load, memory and
    disk during the fit are as visible as before, and an interrupt from the keyboard ends it at once.

    Parameters
    ----------
    seconds : float
        The period: a public number, chosen without looking at how long this table takes.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    PrivacyError
        If it is not a positive number of at most a day.

    See Also
    --------
    Ledger : What adds up epsilon; it does not hide how long a fit takes.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 1000).reshape(-1, 1)
    >>> model = pf.LinearRegression(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=(-1, 1)))
    >>> with pf.padded(0.5):
    ...     model = model.fit(X, 0.5 * X[:, 0])
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST:
        raise PrivacyError(
            f"padded was given seconds={seconds!r}; it is a positive number of at most {LONGEST:,.0f}. Take more than "
            "such a fit usually needs, on public or generated rows."
        )
    start = time.monotonic()
    try:
        yield
    except Exception:
        _wait(start, seconds)
        raise
    _wait(start, seconds)


def _wait(start: float, seconds: float) -> None:
    """Sleep until the end of the period."""
    passed = time.monotonic() - start
    time.sleep(max(start + seconds * max(math.ceil(passed / seconds), 1) - time.monotonic(), 0.0))
