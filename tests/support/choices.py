"""Choices that are written down and made again: private selections of candidates and of patterns, with the random
integers that were asked for.
"""

from __future__ import annotations

import numpy as np

from privfit.privacy import SeededNoise
from privfit.privacy.samplers.patterns import Chain
from tests.support.noise import Call, RecordingNoise


def all_gains(chains) -> np.ndarray:
    """The terms of all patterns, and how chains are long."""
    return np.concatenate(
        [
            np.concatenate([chain.alone.ravel(), [] if chain.linked is None else chain.linked.ravel()])
            for chain in chains
        ]
    )


class Recorded(RecordingNoise):
    """Also writes down patterns, and the coins that were asked for.

    Coins have a seed of their own, so that a replay has the same ones.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._coins = SeededNoise(1000 + seed)
        self.chains: list[list[Chain]] = []
        self.coins_asked: list[list[int]] = []

    def pattern(self, chains, scale):
        return self._kept(chains, scale, self._source.pattern(chains, scale))

    def _kept(self, chains, scale, output):
        self.chains.append(list(chains))
        self.calls.append(Call("pattern", all_gains(chains), scale, output))
        return output

    def below(self, limits):
        self.coins_asked.append(limits.tolist())
        return self._coins.below(limits)


class Replayed(Recorded):
    """Makes the choices of another run."""

    def __init__(self, calls: list[Call], seed: int = 0) -> None:
        super().__init__(seed)
        self._outputs = [call.output for call in calls]

    def pattern(self, chains, scale):
        return self._kept(chains, scale, self._outputs[len(self.calls)])

    def select_each(self, menus, scale, rule):
        return self._recorded_choice(menus, scale, rule, self._outputs[len(self.calls)].tolist())


def range_of(moved: np.ndarray) -> int:
    return int(max(moved)) - int(min(moved))


def moved_range(one: Recorded, two: Recorded) -> list[float]:
    """For every choice, in units of its scale, how far apart the changes of two candidates can be."""
    found, chains = [], iter(zip(one.chains, two.chains, strict=True))
    for left, right in zip(one.calls, two.calls, strict=True):
        if left.kind != "pattern":
            found.append(range_of(left.values - right.values) / left.scale)
            continue
        most, least = [], []
        for a, b in zip(*next(chains), strict=True):
            alone = (a.alone - b.alone).tolist()
            linked = None if a.linked is None else (a.linked - b.linked).tolist()
            for pick, bucket in ((max, most), (min, least)):
                ends = list(alone[0])
                for level in range(1, a.levels):
                    ends = [
                        alone[level][sign]
                        + pick(ends[before] + (linked[level - 1][before][sign] if linked else 0) for before in (0, 1))
                        for sign in (0, 1)
                    ]
                bucket.append(pick(ends))
        found.append((max(most) - min(least)) / left.scale)
    return found
