"""Where noise comes from. The only place in privfit that draws randomness.

Release mode draws from OpenDP's exact integer samplers, which read the operating system's entropy and cannot be seeded.
The seeded source exists for tests and experiments; every result it touches is stamped not private.
"""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.errors import PrivacyError
from privfit.privacy.samplers.decimals import l2_noise, rounded_normal
from privfit.privacy.samplers.norms import GeometricSource, block_norm_noise, linf_noise
from privfit.privacy.samplers.patterns import Chain, choose_pattern
from privfit.privacy.samplers.selection import KeyedBits, Rule, select_each

Integers = NDArray[np.int64]

Seed: TypeAlias = "int | Sequence[int] | np.random.Generator | np.random.RandomState | np.random.BitGenerator | None"

_MOST_SCALE = 1 << 53  # integer scales up to this are drawn by our own sampler: products with k <= 200 fit 64 bits
_MOST_TRIALS = 200  # trials behind one event of probability exp(-x): more are needed with probability below 2^-1000


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
        """The values plus integer noise b in one draw, P(b) proportional to exp(-max|b| / scale)."""
        ...

    def block_norm(self, values: Integers, scale: float, widths: Sequence[int]) -> Integers:
        """The values plus integer noise b in one draw, P(b) proportional to exp(-M / scale), M the largest sum of |b|
        over one of the blocks of these widths, among b whose blocks have one sum; widths of 1 are even or odd as that
        is. It hides changes within that subspace only.
        """
        ...

    def l2(self, values: Integers, scale: float) -> Integers:
        """The values plus noise b in one draw, of density proportional to exp(-|b| / scale), rounded."""
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

    def keyed_bits(self) -> KeyedBits:
        """A random bit for every row."""
        ...

    def key(self) -> bytes:
        """Sixteen random bytes, the key of a hash."""
        ...


class IntegerNoise(ABC):
    """Noise and choices that are made of geometric and of uniform integers, whatever these are drawn from."""

    def linf(self, values: Integers, scale: float) -> Integers:
        return values + linf_noise(values.size, scale, self).reshape(values.shape)

    def block_norm(self, values: Integers, scale: float, widths: Sequence[int]) -> Integers:
        return values + block_norm_noise(widths, scale, self)

    def select(self, scores: Sequence[int], scale: float) -> int:
        return self.select_each([scores], scale, "permute-and-flip")[0]

    def select_each(self, menus: Sequence[Sequence[int]], scale: float, rule: Rule) -> list[int]:
        return select_each(menus, scale, rule, self)

    def pattern(self, chains: Sequence[Chain], scale: float) -> tuple[int, tuple[int, ...]]:
        return choose_pattern(chains, scale, self)

    @abstractmethod
    def geometric(self, size: int, scale: float) -> Integers:
        """Independent integers from 0 on, P(j) proportional to exp(-j / scale)."""

    @abstractmethod
    def below(self, limits: Integers) -> Integers:
        """For each limit an integer from 0 to limit - 1, all equally likely."""


class SecureNoise(IntegerNoise):
    """OpenDP's integer samplers, one vector call for all values, and noise made of the operating system's entropy."""

    private = True

    def laplace(self, values: Integers, scale: float) -> Integers:
        return _opendp_noise("laplace", values, scale)

    def gaussian(self, values: Integers, scale: float) -> Integers:
        return _opendp_noise("gaussian", values, scale)

    def l2(self, values: Integers, scale: float) -> Integers:
        return l2_noise(values, scale)

    def normal(self, values: Integers, scale: float) -> Integers:
        return rounded_normal(values, scale)

    def one_in(self, count: int) -> bool:
        return secrets.randbelow(count) == 0

    def keyed_bits(self) -> KeyedBits:
        return KeyedBits(secrets.token_bytes(32))

    def key(self) -> bytes:
        return secrets.token_bytes(16)

    def geometric(self, size: int, scale: float) -> Integers:
        """For an integer scale by Algorithm 2 of Canonne, Kamath and Steinke (2020), all at once: a uniform number u
        below the scale, kept with probability exp(-u / scale), plus the scale times the number of successes of
        probability 1/e in a row. For other scales from two-sided numbers: k stays if it is not negative and becomes
        -k - 1 if it is; both halves have the law wanted.
        """
        whole = int(scale)
        if whole != scale or not 1 <= whole <= _MOST_SCALE:
            drawn = self.laplace(np.zeros(size, dtype=np.int64), scale)
            return np.asarray(np.where(drawn >= 0, drawn, -drawn - 1), dtype=np.int64)
        low, open_ = np.zeros(size, dtype=np.int64), np.arange(size)
        while len(open_):
            low[open_] = self.below(np.full(len(open_), whole, dtype=np.int64))
            open_ = open_[~self.exp_trials(low[open_], whole)]
        high, open_ = np.zeros(size, dtype=np.int64), np.arange(size)
        while len(open_):
            open_ = open_[self.exp_trials(np.full(len(open_), whole, dtype=np.int64), whole)]
            high[open_] += 1
        return low + whole * high

    def exp_trials(self, parts: Integers, whole: int) -> NDArray[np.bool_]:
        """Independent trials that succeed with probability exp(-parts / whole), exactly: trials of probability
        parts / (k whole), k = 1, 2, ..., are made until one fails; their number is odd with that probability.
        """
        odd, open_ = np.ones(len(parts), dtype=bool), np.arange(len(parts))
        for k in range(1, _MOST_TRIALS):
            open_ = open_[self.below(np.full(len(open_), whole * k, dtype=np.int64)) < parts[open_]]
            if not len(open_):
                break
            odd[open_] = k % 2 == 0
        return odd

    def below(self, limits: Integers) -> Integers:
        """By rejection from 63 bits of the operating system's entropy: exact for limits up to 2^62."""
        if (limits < 1).any():
            raise ValueError("There is no integer from 0 to below a limit of less than 1.")
        bounds, found = limits.astype(np.uint64), np.zeros(limits.shape, dtype=np.uint64)
        open_ = np.ones(limits.shape, dtype=bool)
        whole = np.uint64(1 << 63)  # 63 bits: whole // bound is exact
        while open_.any():
            tried = np.frombuffer(os.urandom(8 * int(open_.sum())), dtype=np.uint64) >> np.uint64(1)
            bound = bounds[open_]
            fits = tried < whole // bound * bound
            found[open_] = np.where(fits, tried % bound, 0)
            open_[open_] = ~fits
        return found.astype(np.int64)


@cache
def _opendp() -> ModuleType:
    import opendp.prelude

    dp: ModuleType = opendp.prelude
    dp.enable_features("contrib")
    return dp


def _opendp_noise(kind: Literal["laplace", "gaussian"], values: Integers, scale: float) -> Integers:
    """The values with OpenDP's discrete noise, in one call."""
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"), size=int(values.size))
    if kind == "laplace":
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    return np.asarray(measurement(values.ravel().tolist()), dtype=np.int64).reshape(values.shape)


class SeededNoise(IntegerNoise):
    """Reproducible noise with the right law and no secrecy: NOT private, for tests and experiments only."""

    private = False

    def __init__(self, random_state: Seed) -> None:
        self._generator = seeded_generator(random_state)

    def laplace(self, values: Integers, scale: float) -> Integers:
        stop = -np.expm1(-1.0 / scale)
        up, down = self._generator.geometric(stop, (2, *values.shape))
        return np.asarray(values + up - down, dtype=np.int64)

    def one_in(self, count: int) -> bool:
        return bool(self._generator.integers(count) == 0)

    def keyed_bits(self) -> KeyedBits:
        return KeyedBits(self._generator.bytes(32))

    def key(self) -> bytes:
        return self._generator.bytes(16)

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


PublicGenerator = np.random.Generator
"""Random numbers that hide nothing, for functions of the user's own."""


Seeded = np.random.Generator
"""What generated tables are drawn from: nothing private."""


def seeded_generator(random_state: Seed) -> Seeded:
    """A numpy generator from a seed, a Generator or a RandomState. Nothing private may ever be drawn from it."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.Generator(random_state._bit_generator)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise PrivacyError(
            f"random_state={random_state!r} was given; it is an integer, a numpy Generator or RandomState, or "
            "None. Leave it out to draw secret noise."
        ) from None


def noise_source(random_state: Seed) -> Sampler:
    """Secure noise without a seed; seeded noise, which is not private, with one."""
    return SecureNoise() if random_state is None else SeededNoise(random_state)
