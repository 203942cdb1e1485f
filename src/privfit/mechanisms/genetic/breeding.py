"""How candidates beget candidates: crossover and mutation, which never see the data.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import PrivacyError
from privfit.privacy.samplers.norms import Source

Floats = NDArray[np.float64]

FINE = 1 << 30


@dataclass(frozen=True)
class Breeding:
    """The settings of a genetic search.

    Parameters
    ----------
    candidates : how many candidates a round has (m in the paper).
    parents : how many of them are selected (m').
    mutation : how far a mutation moves a coordinate in the first round, as a share of its domain.
    decay : by what factor that shrinks from round to round.
    """

    candidates: int = 200
    parents: int = 1
    mutation: float = 0.05
    decay: float = 0.95

    def check(self) -> None:
        """Refuse settings that mean nothing."""
        for name, value, least in (("candidates", self.candidates, 2), ("parents", self.parents, 1)):
            if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
                raise PrivacyError(
                    f"{name}={value!r} was given; it is a whole number of at least {least}. Leave it out if in doubt."
                )
        if self.parents >= self.candidates:
            raise PrivacyError(
                f"parents={self.parents} of candidates={self.candidates} were given; fewer are selected than there "
                "are. Use parents=1 if in doubt."
            )
        for name, number in (("mutation", self.mutation), ("decay", self.decay)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= 1:
                raise PrivacyError(
                    f"{name}={number!r} was given; it is above 0 and at most 1. Leave it out if in doubt."
                )

    def step(self, breeding: int) -> float:
        """How far a mutation goes when candidates are bred for the n-th time, as a share of the domain."""
        return self.mutation * self.decay**breeding

    def offspring(self, parents: Floats, low: Floats, high: Floats, breeding: int, source: Source) -> Floats:
        """New candidates from the parents: two by two they swap their ends, then each moves in one coordinate.

        The parents themselves stay among them.

        Every coordinate can be met by a mutation. (As printed in the paper the last one, which is the constant of a
        classifier, never is.)
        """
        wanted, width = self.candidates - len(parents), parents.shape[1]
        if len(parents) == 1:
            children = np.repeat(parents, wanted, axis=0)
        else:
            pairs = -(-wanted // 2)
            first = source.below(np.full(pairs, len(parents), dtype=np.int64))
            second = (first + 1 + source.below(np.full(pairs, len(parents) - 1, dtype=np.int64))) % len(parents)
            cut = 1 + source.below(np.full(pairs, max(width - 1, 1), dtype=np.int64))
            head = np.arange(width) < cut[:, None]
            one, other = parents[first], parents[second]
            children = np.concatenate([np.where(head, one, other), np.where(head, other, one)])[:wanted]
        place = source.below(np.full(wanted, width, dtype=np.int64))
        sign = 2 * source.below(np.full(wanted, 2, dtype=np.int64)) - 1
        rows = np.arange(wanted)
        children[rows, place] += sign * self.step(breeding) * (high - low)[place]
        return np.concatenate([parents, np.clip(children, low, high)])


def scattered(count: int, low: Floats, high: Floats, source: Source) -> Floats:
    """Candidates anywhere in the domain, all places equally likely."""
    drawn = source.below(np.full(count * len(low), FINE + 1, dtype=np.int64)).reshape(count, len(low))
    return np.asarray(np.clip(low + (high - low) * (drawn / FINE), low, high), dtype=np.float64)
