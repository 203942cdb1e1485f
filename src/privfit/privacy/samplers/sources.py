"""Where noise comes from. The only place in privfit that draws randomness.

Release mode draws from OpenDP's exact integer samplers, which read the operating system's entropy and cannot be seeded.
The seeded source exists for tests and experiments; every result it touches is stamped not private.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.errors import PrivacyError
from privfit.privacy.samplers.block_norm import octahedra
from privfit.privacy.samplers.norms import GeometricSource, ball, cube, rounded_normal, secret_below, secret_geometric
from privfit.privacy.samplers.patterns import Chain, choose_pattern
from privfit.privacy.samplers.selection import KeyedCoins, Rule, select_each

Integers = NDArray[np.int64]


class Sampler(GeometricSource, Protocol):
    """A source of integer noise, and of the random integers that it is made of."""

    private: bool

    def laplace(self, values: Integers, scale: float) -> Integers:
        """The values plus independent discrete Laplace noise, P(k) proportional to exp(-|k| / scale)."""
        ...

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """The values plus independent discrete Gaussian noise, P(k) proportional to exp(-k^2 / (2 scale^2))."""
        ...

    def linf(self, values: Integers, scale: float) -> Integers:
        """The values plus whole-number noise b in one piece, P(b) proportional to exp(-max|b| / scale)."""
        ...

    def octahedra(self, values: Integers, scale: float, widths: Sequence[int]) -> Integers:
        """The values plus whole-number noise b in one piece, P(b) proportional to exp(-M / scale), M the largest sum of
        |b| over one of the blocks of these widths, among b whose blocks have one sum; widths of 1 are even or odd as
        that is. It hides moves of that kind only.
        """
        ...

    def l2(self, values: Integers, scale: float) -> Integers:
        """The values plus noise b in one piece, of density proportional to exp(-|b| / scale), rounded."""
        ...

    def normal(self, values: Integers, scale: float) -> Integers:
        """The values plus independent normal noise of this standard deviation, rounded."""
        ...

    def one_in(self, count: int) -> bool:
        """True once in `count` times."""
        ...

    def select(self, scores: Sequence[int], scale: float) -> int:
        """The place of one of the scores, by permute-and-flip."""
        ...

    def select_each(self, menus: Sequence[Sequence[int]], scale: float, rule: Rule) -> list[int]:
        """The place of one of the scores of every menu."""
        ...

    def pattern(self, chains: Sequence[Chain], scale: float) -> tuple[int, tuple[int, ...]]:
        """One of the chains, and a sign for each of its levels, by the exponential mechanism."""
        ...

    def coins(self) -> KeyedCoins:
        """A coin for every row."""
        ...


class SecureNoise:
    """OpenDP's integer samplers, one vector call for all values, and shapes made of them."""

    private = True

    def laplace(self, values: Integers, scale: float) -> Integers:
        return _call(_opendp().m.make_laplace, "l1_distance", "i64", values, scale)

    def one_in(self, count: int) -> bool:
        return secrets.randbelow(count) == 0

    def gaussian(self, values: Integers, scale: float) -> Integers:
        return _call(_opendp().m.make_gaussian, "l2_distance", "float", values, scale)

    def linf(self, values: Integers, scale: float) -> Integers:
        return values + cube(values.size, scale, self).reshape(values.shape)

    def octahedra(self, values: Integers, scale: float, widths: Sequence[int]) -> Integers:
        return values + octahedra(widths, scale, self)

    def l2(self, values: Integers, scale: float) -> Integers:
        return ball(values, scale)

    def normal(self, values: Integers, scale: float) -> Integers:
        return rounded_normal(values, scale)

    def select(self, scores: Sequence[int], scale: float) -> int:
        return self.select_each([scores], scale, "permute-and-flip")[0]

    def select_each(self, menus: Sequence[Sequence[int]], scale: float, rule: Rule) -> list[int]:
        return select_each(menus, scale, rule, self)

    def pattern(self, chains: Sequence[Chain], scale: float) -> tuple[int, tuple[int, ...]]:
        return choose_pattern(chains, scale, self)

    def coins(self) -> KeyedCoins:
        return KeyedCoins(secrets.token_bytes(32))

    def geometric(self, size: int, scale: float) -> Integers:
        return secret_geometric(size, scale, self.laplace)

    def below(self, limits: Integers) -> Integers:
        return secret_below(limits)


@cache
def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def _call(make: Any, distance: str, distance_type: str, values: Integers, scale: float) -> Integers:
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"), size=int(values.size))
    metric = getattr(dp, distance)(T=float if distance_type == "float" else distance_type)
    noisy = make(domain, metric, scale=scale)(values.ravel().tolist())
    return np.asarray(noisy, dtype=np.int64).reshape(values.shape)


class SeededNoise:
    """Reproducible noise with the right law and no secrecy: NOT private, for tests and experiments only."""

    private = False

    def __init__(self, random_state: Any) -> None:
        self._generator = seeded_generator(random_state)

    def laplace(self, values: Integers, scale: float) -> Integers:
        stop = -np.expm1(-1.0 / scale)
        up, down = self._generator.geometric(stop, (2, *values.shape))
        return np.asarray(values + up - down, dtype=np.int64)

    def one_in(self, count: int) -> bool:
        return bool(self._generator.integers(count) == 0)

    def linf(self, values: Integers, scale: float) -> Integers:
        return values + cube(values.size, scale, self).reshape(values.shape)

    def octahedra(self, values: Integers, scale: float, widths: Sequence[int]) -> Integers:
        return values + octahedra(widths, scale, self)

    def select(self, scores: Sequence[int], scale: float) -> int:
        return self.select_each([scores], scale, "permute-and-flip")[0]

    def select_each(self, menus: Sequence[Sequence[int]], scale: float, rule: Rule) -> list[int]:
        return select_each(menus, scale, rule, self)

    def pattern(self, chains: Sequence[Chain], scale: float) -> tuple[int, tuple[int, ...]]:
        return choose_pattern(chains, scale, self)

    def coins(self) -> KeyedCoins:
        return KeyedCoins(self._generator.bytes(32))

    def geometric(self, size: int, scale: float) -> Integers:
        return np.asarray(self._generator.geometric(-np.expm1(-1.0 / scale), size) - 1, dtype=np.int64)

    def below(self, limits: Integers) -> Integers:
        return np.asarray(self._generator.integers(limits), dtype=np.int64)

    def l2(self, values: Integers, scale: float) -> Integers:
        direction = self._generator.normal(size=values.shape)
        length = self._generator.gamma(values.size, scale)
        return np.asarray(
            values + np.rint(length * direction / np.sqrt(np.sum(direction**2))).astype(np.int64), dtype=np.int64
        )

    def normal(self, values: Integers, scale: float) -> Integers:
        return np.asarray(
            values + np.rint(scale * self._generator.normal(size=values.shape)).astype(np.int64), dtype=np.int64
        )

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """By rejection from discrete Laplace noise (Canonne, Kamath, Steinke 2020, Algorithm 3)."""
        tail = np.floor(scale) + 1
        noise = np.zeros(values.shape, dtype=np.int64)
        open_ = np.ones(values.shape, dtype=bool)
        while open_.any():
            tried = self.laplace(np.zeros(int(open_.sum()), dtype=np.int64), tail)
            kept = self._generator.random(tried.shape) < np.exp(-0.5 * ((np.abs(tried) - scale**2 / tail) / scale) ** 2)
            noise[open_] = np.where(kept, tried, 0)
            open_[open_] = ~kept
        return np.asarray(values + noise, dtype=np.int64)


def seeded_generator(random_state: Any) -> np.random.Generator:
    """A numpy generator from a seed, a Generator or a RandomState. Nothing private may ever be drawn from it."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.Generator(random_state._bit_generator)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise PrivacyError(
            f"random_state={random_state!r} was given; it is a whole number, a numpy Generator or RandomState, or "
            "None. "
            "Leave it out to draw secret noise."
        ) from None


def noise_source(random_state: Any) -> Sampler:
    """Secure noise without a seed; seeded noise, which is not private, with one."""
    return SecureNoise() if random_state is None else SeededNoise(random_state)
