"""The stages of a release that is made bit by bit: what each may cost, and its noise, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Event, Noise, PrivacyError, Terms, exact
from privfit.privacy.event import laplace_scale, value_sd
from privfit.privacy.shapes import check_cube

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_BITS, MOST_BITS, BITS = 16, 32, 20


@dataclass(frozen=True)
class Facts:
    """Everything public that stages, shares and rules may depend on. `rows` is the number of rows under replace-one, and a public guess of it under add-remove."""

    columns: int
    clusters: int
    rows: int
    terms: Terms

    @property
    def epsilon(self) -> float:
        """The whole price of the fit."""
        return self.terms.budget.epsilon

    @property
    def knows_rows(self) -> bool:
        """Whether `rows` is the number of rows and no guess."""
        return self.terms.adjacency == "replace-one"

    @property
    def moved(self) -> int:
        """What a person can move in a stage, in its norm: 1 per row that is there or not, 2 per row that takes other values.

        Guarantee: docs/proofs/clustering.md, Lemmas 2 to 5.
        """
        return (2 if self.terms.adjacency == "replace-one" else 1) * int(self.terms.rows_per_person)

    @property
    def signal(self) -> float:
        """How many times larger than the noise a count of all rows is, about."""
        return self.rows * self.epsilon / self.moved


@dataclass(frozen=True)
class Stage:
    """Values that are released together: Laplace noise on all of them, or a cube for every part. `most` is the largest norm of what one row adds, in units of 1."""

    name: str
    noise: Literal["laplace", "linf"]
    parts: tuple[int, ...]
    share: Fraction
    most: int = 1


@dataclass(frozen=True)
class Plan:
    """The stages of a fit. Their shares of epsilon add up to at most 1.

    Guarantee: drawing every stage once is epsilon-DP; docs/proofs/clustering.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    mechanism: str
    stages: tuple[Stage, ...]
    facts: Facts

    def __post_init__(self) -> None:
        if sum(stage.share for stage in self.stages) > 1:
            raise PrivacyError(f"The stages of {self.mechanism!r} cost more than the whole. Shares of epsilon add up to at most 1.")

    @cached_property
    def unit(self) -> int:
        """Lattice steps to 1, a power of two: noise is a few thousand of them at least, for any usual epsilon."""
        return 1 << min(max(math.ceil(math.log2(self.facts.epsilon)) + BITS, LEAST_BITS), MOST_BITS)

    def scale(self, stage: Stage) -> float:
        """The scale of a stage's noise, on the lattice: what a person moves, over the stage's share of epsilon."""
        return laplace_scale(stage.most * self.facts.moved * self.unit, exact(self.facts.epsilon) * stage.share)

    def sd(self, stage: Stage) -> float:
        """The standard deviation of the noise on one value of a stage, in units of 1."""
        return value_sd(stage.noise, stage.parts[0]) * self.scale(stage) / self.unit

    @cached_property
    def event(self) -> Event:
        """The price of everything and the noise on every part."""
        kinds, parts, scales = [], [], []
        for stage in self.stages:
            scale = self.scale(stage)
            for size in stage.parts:
                if stage.noise == "linf":
                    check_cube(size, scale)
                kinds.append(stage.noise)
                parts.append(size)
                scales.append(scale)
        return Event(
            mechanism=self.mechanism,
            epsilon=self.facts.epsilon,
            adjacency=self.facts.terms.adjacency,
            rows_per_person=int(self.facts.terms.rows_per_person),
            noise="+".join(kinds),
            sensitivity=max(stage.most for stage in self.stages) * self.facts.moved * self.unit,
            scale=max(scales),
            unit=self.unit,
            n_values=sum(parts),
            parts=tuple(parts),
            scales=tuple(scales),
        )

    def drawn(self, noise: Noise, stage: Stage, values: Integers) -> Floats:
        """The values of a stage, which are on the lattice, with their noise, in units of 1."""
        scale = self.scale(stage)
        draw = noise.laplace if stage.noise == "laplace" else noise.linf
        pieces = np.split(values.ravel(), np.cumsum(stage.parts)[:-1])
        noisy = np.concatenate([draw(piece, scale) for piece in pieces])
        return np.asarray(noisy.reshape(values.shape) / self.unit, dtype=np.float64)

    @property
    def shares(self) -> str:
        """What epsilon is spent on, in words."""
        return ", ".join(f"{stage.name} {float(stage.share):.0%}" for stage in self.stages)
