"""Noise sources for attacks: one that writes down what it was asked, one that answers as another run did.

Neither is secret. They take the place of a fit's own source for as long as `noise_from` is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import get_ident

import numpy as np
from numpy.typing import NDArray

from privfit.models import aggregate, private
from privfit.privacy import Sampler, Seed, SeededNoise
from privfit.privacy.samplers.patterns import Chain
from privfit.privacy.samplers.selection import KeyedBits, Rule
from privfit.summaries import release

Integers = NDArray[np.int64]
Values = NDArray[np.object_] | Integers
PUBLIC_SEED = 2026
"""Of random bits that hide nothing, the same for both tables: chosen, not measured."""


@dataclass(frozen=True)
class Call:
    """One request for noise: its kind, what was noised, the scale, and what came out."""

    kind: str
    values: Values
    scale: float
    output: Values | int
    chains: tuple[Chain, ...] = ()
    """Of a choice among patterns: what each of them gains."""


class RecordingNoise:
    """Seeded noise that remembers every call, and what `watch` says at each of them."""

    private = True

    def __init__(self, seed: int = 0, watch: Callable[[], int] | None = None) -> None:
        self._source = SeededNoise(seed)
        self._bits = SeededNoise(PUBLIC_SEED)
        self._watch = watch
        self.calls: list[Call] = []
        self.watched: list[int] = []

    def _keep(self, call: Call) -> None:
        self.calls.append(call)
        if self._watch is not None:
            self.watched.append(self._watch())

    def _answer(self, kind: str, values: Values, scale: float, *facts: object) -> Integers:
        output = getattr(self._source, kind)(values, scale, *facts)
        self._keep(Call(kind, values.copy(), scale, output))
        return output  # type: ignore[no-any-return]

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Discrete Laplace noise."""
        return self._answer("laplace", values, scale)

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """Discrete Gaussian noise."""
        return self._answer("gaussian", values, scale)

    def linf(self, values: Integers, scale: float) -> Integers:
        """K-norm noise, L-infinity."""
        return self._answer("linf", values, scale)

    def block_norm(self, values: Integers, scale: float, widths: Sequence[int]) -> Integers:
        """K-norm noise, block norm."""
        return self._answer("block_norm", values, scale, widths)

    def l2(self, values: Integers, scale: float) -> Integers:
        """K-norm noise, L2."""
        return self._answer("l2", values, scale)

    def normal(self, values: Integers, scale: float) -> Integers:
        """Normal noise, rounded."""
        return self._answer("normal", values, scale)

    def select(self, scores: Sequence[int], scale: float) -> int:
        """One choice, by permute-and-flip."""
        return int(self._answer("select", np.array(scores, dtype=object), scale))

    def select_each(self, menus: Sequence[Sequence[int]], scale: float, rule: Rule) -> list[int]:
        """One choice of every menu."""
        return self._recorded_choice(menus, scale, rule, self._source.select_each(menus, scale, rule))

    def _recorded_choice(
        self, menus: Sequence[Sequence[int]], scale: float, rule: Rule, output: list[int]
    ) -> list[int]:
        scores = np.concatenate([np.array(menu, dtype=object) for menu in menus])
        self._keep(Call(rule, scores, scale, np.array(output)))
        return output

    def pattern(self, chains: Sequence[Chain], scale: float) -> tuple[int, tuple[int, ...]]:
        """A chain and signs."""
        return self._recorded_pattern(chains, scale, self._source.pattern(chains, scale))

    def _recorded_pattern(
        self, chains: Sequence[Chain], scale: float, output: tuple[int, tuple[int, ...]]
    ) -> tuple[int, tuple[int, ...]]:
        gains = np.concatenate([chain.alone.ravel() for chain in chains])
        self._keep(Call("pattern", gains, scale, np.array((output[0], *output[1])), tuple(chains)))
        return output

    def geometric(self, size: int, scale: float) -> Integers:
        """Geometric integers; not written down."""
        return self._source.geometric(size, scale)

    def below(self, limits: Integers) -> Integers:
        """Public random bits, as for mutations: not noise, not written down, and the same in a replay."""
        return self._bits.below(limits)

    def keyed_bits(self) -> KeyedBits:
        """Public random bits for rows, the same for both tables."""
        return KeyedBits(b"the same bits for both tables")

    def key(self) -> bytes:
        """A public key, the same for both tables."""
        return b"one key for both"

    def one_in(self, count: int) -> bool:
        """True once in `count` times."""
        return self._source.one_in(count)


class ReplayingNoise(RecordingNoise):
    """Answers with the noisy outputs of another run, so that a model built from noisy values alone cannot distinguish
    two tables. A call that the other run did not make, or not so, is answered with noise of its own.
    """

    def __init__(self, calls: list[Call], watch: Callable[[], int] | None = None) -> None:
        super().__init__(watch=watch)
        self._outputs = [call.output for call in calls]

    def _answer(self, kind: str, values: Values, scale: float, *facts: object) -> Integers:
        place = len(self.calls)
        output = self._outputs[place] if place < len(self._outputs) else None
        if output is None or np.shape(output) != (() if kind == "select" else values.shape):
            return super()._answer(kind, values, scale, *facts)
        self._keep(Call(kind, values.copy(), scale, output))
        return np.copy(output)

    def select_each(self, menus: Sequence[Sequence[int]], scale: float, rule: Rule) -> list[int]:
        """The choices of the other run."""
        place = len(self.calls)
        if place < len(self._outputs) and np.shape(self._outputs[place]) == (len(menus),):
            return self._recorded_choice(menus, scale, rule, np.asarray(self._outputs[place]).tolist())
        return super().select_each(menus, scale, rule)

    def pattern(self, chains: Sequence[Chain], scale: float) -> tuple[int, tuple[int, ...]]:
        """The pattern of the other run."""
        place = len(self.calls)
        if place < len(self._outputs) and np.ndim(self._outputs[place]) == 1:
            column, *signs = np.asarray(self._outputs[place]).tolist()
            if column < len(chains) and len(signs) == chains[column].levels:
                return self._recorded_pattern(chains, scale, (column, tuple(signs)))
        return super().pattern(chains, scale)


_SOURCE = "noise_source"
_PLACES = (private, release, aggregate)
"""Where fits and functions ask for their source."""


@contextmanager
def noise_from(source: Sampler) -> Iterator[None]:
    """While this is open, fits of this thread draw from the source. Not for fits on private tables.

    Fits of other threads draw as ever: what they release is as private as they say.
    """
    before, thread = [getattr(place, _SOURCE) for place in _PLACES], get_ident()

    def asked(seed: Seed, usual: Callable[[Seed], Sampler]) -> Sampler:
        return source if get_ident() == thread else usual(seed)

    for place, usual in zip(_PLACES, before, strict=True):
        setattr(place, _SOURCE, partial(asked, usual=usual))
    try:
        yield
    finally:
        for place, usual in zip(_PLACES, before, strict=True):
            setattr(place, _SOURCE, usual)
