"""The precision attack: what is released of a noisy value lies on one public lattice, whatever the rows are.

Noise that is computed in floats leaks: which floats can come out depends on the value that is noised (Mironov, CCS
2012). Here every noisy value must be an integer that the sampler itself made, from an integer, in steps of a unit that
the event states. `black_box` looks at low bits from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from privfit.audit.cases import Case, spacious_ledger
from privfit.audit.recording import Call
from privfit.audit.replay import watched_fit
from privfit.audit.rows import Neighbours
from privfit.audit.table import Finding
from privfit.privacy import Draws
from privfit.privacy.parts import Additive

Noised = tuple[np.ndarray, np.ndarray]


@contextmanager
def watched_draws() -> Iterator[list[Noised]]:
    """While this is open, every array that is noised is written down, with what it became."""
    found: list[Noised] = []
    usual = Draws.add

    def add(self: Draws, values: Any, **given: Any) -> Any:
        noisy = usual(self, values, **given)
        found.append((np.copy(values), np.copy(noisy)))
        return noisy

    Draws.add = add  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Draws.add = usual  # type: ignore[method-assign]


def attack_precision(case: Case, pair: Neighbours) -> Finding:
    """Two neighbours, each with noise of its own: integers, made by the sampler, on the lattice of the event."""
    rows, ledger, faults, units = case.rows, spacious_ledger(), set[str](), []
    for own in (pair.left, pair.right):
        with watched_draws() as noised:
            seen = watched_fit(case.make(pair.adjacency, ledger, case.epsilon), case.frame(rows, pair, own), ledger)
        faults |= _off_the_lattice(noised, seen.noise.calls)
        parts = [part for event in seen.events for part in event.flat() if isinstance(part, Additive)]
        units.append([(part.unit, part.size) for part in parts])
        faults |= {"a unit that is no integer" for part in parts if part.unit != int(part.unit)}
    if units[0] != units[1]:
        faults.add("lattices depend on rows")
    return case.finding("precision", (None, None), 2, "; ".join(sorted(faults)))


def _off_the_lattice(noised: list[Noised], calls: list[Call]) -> set[str]:
    """What is wrong with values before and after noise."""
    drawn = {np.asarray(value).item() for call in calls for value in np.ravel(np.asarray(call.output))}
    found = set()
    for values, noisy in noised:
        if values.dtype.kind not in "iu":
            found.add("noise on values that are no integers")
        if noisy.dtype.kind not in "iu":
            found.add("noisy values that are no integers")
        elif not set(np.ravel(noisy).tolist()) <= drawn:
            found.add("noisy values that no sampler made")
    return found
