"""The target given the features, as far as a public sample shows it: a posterior, of which every generated table has a
draw of its own.

A few hundred rows do not say what effects are. One fitted line would have effects that are too weak, all of them
shrunk; so effects are drawn from what the sample leaves possible. Numbers have a line and a spline, categories a weight
per level, and pairs of columns random products; the spread of each column's weights is found from the sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import expit, logit

from privfit.privacy import PublicGenerator, seeded_generator
from privfit.schema import Category, Column, Numeric, Schema

Floats = NDArray[np.float64]
Coded = dict[str, Floats]
"""Numbers as they are, and levels as their places in the schema."""

KNOTS = 16
"""Knots of a number's curve. Chosen, not measured."""
PRODUCTS = 400
"""Random products of columns, which stand for all interactions: more cost time. Chosen, not measured."""
USUAL_VARIANCE, USUAL_WEIGHTS = 0.2, 4.0
"""The variance of weights before the sample is seen, and how many weights it counts as. More makes effects stronger:
with 0.135 losses were forecast lower on Adult and Bank (`python papers/experiments/planning.py`), with 0.4 higher."""
LOGISTIC_VARIANCE = np.pi**2 / 3
"""Of the errors of a logistic law, which the usual variance is relative to: numbers have errors of another one."""
ROUNDS = 12
"""How often variances are found anew. Chosen, not measured."""
NEWTON_STEPS, CLOSE = 30, 1e-5
"""Steps to the most likely weights at most, and what a step must gain to be followed by another."""
MOST_ROWS = 4_000
"""Rows of a sample that the law is fitted to: time grows with them. Chosen, not measured."""
INTERCEPT_VARIANCE = 100.0
"""So large that the sample alone decides. Chosen, not measured."""
PIECE_ROWS = 4_096
"""Rows whose effects are in memory together, about 20 MB."""


class Law(Protocol):
    """Draws targets."""

    def draw(self, values: Coded, generator: PublicGenerator) -> Floats:
        """One target a row."""
        ...


# -- features of the law ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Effects:
    """What effects are of: for every row a constant, lines, splines and levels of columns, and products of them."""

    columns: tuple[Column, ...]
    centres: Floats
    spreads: Floats
    mixes: tuple[Floats, Floats]
    product_scale: Floats
    groups: NDArray[np.intp]
    """Which variance each weight has; 0 is the constant."""

    @classmethod
    def of(cls, schema: Schema, sample: Coded, seed: int) -> Effects:
        """For these columns, centred and scaled by the sample."""
        generator = seeded_generator(seed)
        plain = np.hstack([_plain(column, sample[column.name]) for column in schema.features])
        sizes = [size for column in schema.features for size in _sizes(column)]
        lines = np.concatenate([np.full(size, size == 1) for size in sizes])
        spreads = np.where(lines, np.maximum(plain.std(axis=0), 1e-3), 1.0)
        groups = np.repeat(np.arange(len(sizes) + 2), [1, *sizes, PRODUCTS])
        first, second = generator.standard_normal((2, plain.shape[1], PRODUCTS))
        bare = cls(schema.features, plain.mean(axis=0), spreads, (first, second), np.ones(PRODUCTS), groups)
        products = bare(sample)[:, -PRODUCTS:]
        scale = np.maximum(products.std(axis=0), 1e-9) * np.sqrt(PRODUCTS)
        return cls(bare.columns, bare.centres, bare.spreads, bare.mixes, scale, groups)

    def __call__(self, values: Coded) -> Floats:
        """One row of effects per row."""
        plain = np.hstack([_plain(column, values[column.name]) for column in self.columns])
        centred = (plain - self.centres) / self.spreads
        products = (centred @ self.mixes[0]) * (centred @ self.mixes[1]) / self.product_scale
        return np.hstack([np.ones((len(plain), 1)), centred, products])

    def scores(self, values: Coded, weights: Floats) -> Floats:
        """What the weights make of rows, a few thousand at a time."""
        return np.concatenate([self(piece) @ weights for piece in _pieces(values)])


def _pieces(values: Coded) -> Iterator[Coded]:
    rows = len(next(iter(values.values())))
    for start in range(0, rows, PIECE_ROWS):
        yield {name: held[start : start + PIECE_ROWS] for name, held in values.items()}


def _sizes(column: Column) -> tuple[int, ...]:
    return (1, KNOTS) if isinstance(column, Numeric) else (len(column.levels),)


def _plain(column: Column, values: Floats) -> Floats:
    """A number's place between its bounds and how near it is to each knot; a column per level."""
    if isinstance(column, Category):
        return np.eye(len(column.levels))[values.astype(np.intp)]
    place = np.clip(
        column.on_scale(values) if column.is_wide else (values - column.low) / (column.high - column.low), 0, 1
    )
    knots = np.arange(KNOTS) / (KNOTS - 1)
    return np.hstack([place[:, None], np.maximum(0, 1 - np.abs(place[:, None] - knots) * (KNOTS - 1))])


# -- what the sample leaves possible ---------------------------------------------------------------


@dataclass(frozen=True)
class Posterior:
    """Normal: the most likely weights, and the lower root of their precision."""

    weights: Floats
    root: Floats

    def drawn(self, generator: PublicGenerator) -> Floats:
        """Weights that the sample leaves possible."""
        noise = generator.standard_normal(len(self.weights))
        return np.asarray(self.weights + solve_triangular(self.root, noise, lower=True, trans="T"))

    @property
    def second_moments(self) -> Floats:
        """The mean of every squared weight."""
        inverse = cho_solve((self.root, True), np.eye(len(self.weights)))
        return np.asarray(self.weights**2 + np.diag(inverse))


def class_posterior(design: Floats, own: Floats, variances: Floats, start: Floats) -> Posterior:
    """Of a logistic law, by Laplace's approximation: Newton steps that are shortened until they gain."""
    weights, root = start, np.eye(len(start))

    def cost(weights: Floats) -> float:
        scores = design @ weights
        return float(np.sum(np.logaddexp(0, scores) - own * scores) + np.sum(weights**2 / variances) / 2)

    before = cost(weights)
    for _ in range(NEWTON_STEPS):
        probability = expit(design @ weights)
        slope = design.T @ (probability - own) + weights / variances
        root = np.linalg.cholesky((design.T * (probability * (1 - probability))) @ design + np.diag(1 / variances))
        step, size = cho_solve((root, True), slope), 1.0
        while size > CLOSE and cost(weights - size * step) > before:
            size /= 2
        weights, after = weights - size * step, cost(weights - size * step)
        if before - after < CLOSE:
            break
        before = after
    return Posterior(np.asarray(weights, dtype=np.float64), np.asarray(root, dtype=np.float64))


def number_posterior(design: Floats, own: Floats, variances: Floats, noise: float) -> Posterior:
    """Of a line with normal errors of this variance."""
    root = np.asarray(np.linalg.cholesky(design.T @ design / noise + np.diag(1 / variances)), dtype=np.float64)
    return Posterior(cho_solve((root, True), design.T @ own / noise), root)


def new_variances(posterior: Posterior, groups: NDArray[np.intp], usual: float) -> Floats:
    """For every group the mean square of its weights, a few usual ones among them."""
    sums = np.bincount(groups, posterior.second_moments) + USUAL_WEIGHTS * usual
    found = sums / (np.bincount(groups) + USUAL_WEIGHTS)
    found[0] = INTERCEPT_VARIANCE
    return np.asarray(found[groups])


# -- laws ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassLaw:
    """Probabilities of classes: a logistic law for each against the others, with the shares that the sample has."""

    effects: Effects
    weights: Floats

    def draw(self, values: Coded, generator: PublicGenerator) -> Floats:
        probabilities = expit(self.effects.scores(values, self.weights))
        if probabilities.shape[1] == 1:
            return np.asarray(generator.random(len(probabilities)) < probabilities[:, 0], dtype=np.float64)
        reached = np.cumsum(probabilities / probabilities.sum(axis=1, keepdims=True), axis=1)
        drawn = (generator.random(len(probabilities))[:, None] > reached).sum(axis=1)
        return np.asarray(np.minimum(drawn, probabilities.shape[1] - 1), dtype=np.float64)


@dataclass(frozen=True)
class NumberLaw:
    """A mean, and an error of a row of the sample that has about the same mean."""

    effects: Effects
    weights: Floats
    target: Numeric
    centre: float
    spread: float
    means: Floats
    """Of the sample, rising."""
    errors: Floats
    """In the same order."""

    def draw(self, values: Coded, generator: PublicGenerator) -> Floats:
        scores = self.effects.scores(values, self.weights)
        near = max(len(self.means) // 10, 5)
        places = np.searchsorted(self.means, scores) + generator.integers(-near, near + 1, size=len(scores))
        drawn = scores + self.errors[np.clip(places, 0, len(self.means) - 1)]
        return np.asarray(np.clip(self.centre + self.spread * drawn, self.target.low, self.target.high))


@dataclass(frozen=True)
class SampledLaw:
    """All laws that a public sample leaves possible."""

    schema: Schema
    effects: Effects
    design: Floats
    own: Floats
    """The target of the sample: for classes a column each, or one of two classes; for a number scaled."""
    posteriors: tuple[Posterior, ...]
    scale: tuple[float, float] = (0.0, 1.0)
    error_variance: float = 0.0

    @classmethod
    def of(cls, schema: Schema, sample: Coded, seed: int) -> SampledLaw:
        """What these rows leave possible."""
        assert schema.target is not None
        rows = len(sample[schema.target.name])
        if rows > MOST_ROWS:
            some = seeded_generator(seed).permutation(rows)[:MOST_ROWS]
            sample = {name: values[some] for name, values in sample.items()}
        effects = Effects.of(schema, sample, seed)
        design, y = effects(sample), sample[schema.target.name]
        if isinstance(schema.target, Numeric):
            return _of_numbers(schema, effects, design, y)
        levels = len(schema.target.levels)
        own = np.eye(levels)[y.astype(np.intp)][:, 1:] if levels == 2 else np.eye(levels)[y.astype(np.intp)]
        return cls(schema, effects, design, own, tuple(_fitted_class(effects, design, one) for one in own.T))

    def drawn(self, seed: int) -> Law:
        """One of them."""
        generator, target = seeded_generator(seed), self.schema.target
        if not isinstance(target, Numeric):
            made = [
                self._with_share(one.drawn(generator), own)
                for one, own in zip(self.posteriors, self.own.T, strict=True)
            ]
            return ClassLaw(self.effects, np.column_stack(made))
        weights = self.posteriors[0].drawn(generator)
        means, most_likely = self.design @ weights, self.design @ self.posteriors[0].weights
        errors = self.own[:, 0] - most_likely
        errors = errors * np.sqrt(self.error_variance / max(float(np.mean(errors**2)), 1e-12))
        order = np.argsort(means)
        return NumberLaw(self.effects, weights, target, *self.scale, means[order], errors[order])

    def _with_share(self, weights: Floats, own: Floats) -> Floats:
        """The weights with the constant at which the class has the share that it has in the sample."""
        share = (own.sum() + 0.5) / (len(own) + 1)
        scores, low, high = self.design @ weights, -40.0, 40.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if expit(scores + middle).mean() < share else (low, middle)
        return np.concatenate([[weights[0] + low], weights[1:]])


def _fitted_class(effects: Effects, design: Floats, own: Floats) -> Posterior:
    weights = np.zeros(design.shape[1])
    weights[0] = logit((own.sum() + 0.5) / (len(own) + 1))
    variances = np.full(len(weights), USUAL_VARIANCE)
    variances[0] = INTERCEPT_VARIANCE
    found = class_posterior(design, own, variances, weights)
    for _ in range(ROUNDS):
        variances = new_variances(found, effects.groups, USUAL_VARIANCE)
        found = class_posterior(design, own, variances, found.weights)
    return found


def _of_numbers(schema: Schema, effects: Effects, design: Floats, y: Floats) -> SampledLaw:
    """The same with normal errors, whose variance is found with the others."""
    centre, spread = float(y.mean()), max(float(y.std()), 1e-12)
    own = (y - centre) / spread
    noise = 0.8
    variances = np.full(design.shape[1], USUAL_VARIANCE * noise / LOGISTIC_VARIANCE)
    variances[0] = INTERCEPT_VARIANCE
    found = number_posterior(design, own, variances, noise)
    for _ in range(ROUNDS):
        variances = new_variances(found, effects.groups, USUAL_VARIANCE * noise / LOGISTIC_VARIANCE)
        unsure = float(np.sum(solve_triangular(found.root, design.T, lower=True) ** 2))
        noise = max((float(np.sum((own - design @ found.weights) ** 2)) + unsure) / len(own), 1e-6)
        found = number_posterior(design, own, variances, noise)
    return SampledLaw(schema, effects, design, own[:, None], (found,), (centre, spread), noise)
