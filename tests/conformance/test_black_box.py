"""Black-box attacks on real noise. The claim must hold, and variants that are broken on purpose must be caught.

Noise is secret, so that every run is another one. Each check that a claim holds fails by chance once in a million runs
at most. Each check that an attack is strong enough has a threshold and a number of draws for which it fails by chance
less than once in a thousand million, by the exact law of both counts (two binomial numbers).
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms import QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.models import ESTIMATORS
from privfit.privacy import Budget, Event, PrivacyParameters, SecureNoise, noised
from privfit.privacy.parts import Additive, KNorm
from privfit.rows import Rows
from privfit.tables import open_table
from tests.conformance.cases import frame, neighbours, schema_for
from tests.support.audit import delta_at_least, epsilon_at_least
from tests.support.effort import quick_or_full
from tests.support.lengths import length
from tests.support.pooled import PooledNoise

EPSILON = 1.0


def worst_pair(features: list, fit_intercept: bool):
    """Two tables of a few columns that differ as much as any two can, as the integers that are released."""
    schema = pf.Schema(features, target=pf.Numeric("y", -1, 1))
    geometry = schema.geometry(intercept=fit_intercept)
    moments = pf.FunctionalMechanism().statistic(geometry, QuadraticProblem(SQUARED))
    choices = [(-1.0, 0.0, 1.0) if isinstance(column, pf.Numeric) else (0.0, 1.0) for column in schema.columns]
    tables = [np.array([[0.0] * len(choices), row]) for row in itertools.product(*choices)]
    values = [
        moments.distinct(Rows(open_table(table), schema, geometry).sum(moments), 2, "replace-one") for table in tables
    ]
    left, right = max(itertools.product(values, values), key=lambda pair: np.abs(pair[0] - pair[1]).sum())
    event = pf.FunctionalMechanism().event(moments, PrivacyParameters(Budget(EPSILON)), SQUARED)
    assert np.abs(left - right).sum() > 0.9 * event.sensitivity, "the pair should use nearly all of the sensitivity"
    return left, right, event


ONE_VALUE = ([pf.Category("s", [0, 1])], False)
SEVEN_VALUES = ([pf.Numeric("x", -1, 1), pf.Category("s", [0, 1])], True)


def audited(left: np.ndarray, right: np.ndarray, scale: float, noise, draws: int, threshold: float) -> float:
    """Score outputs by their likelihood ratio at the scale that is claimed."""

    def scores(values: np.ndarray) -> np.ndarray:
        outputs = noise.laplace(np.tile(values, (draws, 1)), scale)
        return (np.abs(outputs - right).sum(axis=1) - np.abs(outputs - left).sum(axis=1)) / scale

    return epsilon_at_least(scores(left), scores(right), threshold)


@pytest.mark.parametrize(("case", "threshold", "reached"), [(ONE_VALUE, 0.5, 0.5), (SEVEN_VALUES, 0.25, 0.1)])
@quick_or_full("draws", quick=[8000], full=[40_000])
def test_released_moments_stay_under_their_claim_and_close_to_it(
    case, threshold: float, reached: float, draws: int
) -> None:
    left, right, event = worst_pair(*case)
    found = audited(left, right, event.scale, SecureNoise(), draws, threshold)
    assert found <= EPSILON
    assert found > reached * EPSILON, "an attack this weak would prove nothing"


@pytest.mark.parametrize(
    ("name", "factor"), [("halved noise", 2.0), ("a forgotten replacement", 2.0), ("c R for c R^2", 4.0)]
)
def test_too_little_noise_is_caught(name: str, factor: float) -> None:
    left, right, event = worst_pair(*ONE_VALUE)
    assert audited(left, right, event.scale / factor, SecureNoise(), 4000, 0.5) > EPSILON, name


def test_float_noise_is_caught_by_its_support() -> None:
    """Precision attack: integer outputs of neighbours share one lattice; many float outputs of one cannot come from the
    other.
    """
    rng = np.random.default_rng(0)
    unit = 1.0 / 3.0  # a value that floats round

    def fractions(value: float) -> set[float]:
        return {float(output) for output in value + rng.laplace(0, 1.0, 2000)}

    assert not fractions(unit) & fractions(unit + 1), "float noise: disjoint supports"
    outputs = [set(SecureNoise().laplace(np.full(4000, value), 3.0).tolist()) for value in (7, 8)]
    common = outputs[0] & outputs[1]
    assert len(common) > 0.7 * min(len(outputs[0]), len(outputs[1])), "integer noise: one support"


# -- noise of other shapes -------------------------------------------------------------------------

SHAPED_EPSILON = 2.0  # a loss that large is reached often, so that a few thousand draws prove something
GAUSSIAN = Budget(1.0, 0.05)
THREE_VALUES = ([pf.Category("s", [0, 1])], True)


def distance(kind: str, blocks: tuple[int, ...], moved: np.ndarray) -> np.ndarray:
    """How far, in the norm of the noise; blocks add up."""
    moved = moved.astype(float)
    if kind == "linf":
        return sum(np.abs(block).max(axis=-1) for block in np.split(moved, np.cumsum(blocks)[:-1], axis=-1))
    return np.sqrt((moved**2).sum(axis=-1))


def drawn(event: Event) -> Additive:
    """The only part of an event."""
    (part,) = event.parts
    assert isinstance(part, Additive)
    return part


def blocks_of(event: Event) -> tuple[int, ...]:
    """The blocks of its noise, if it is drawn in several."""
    part = drawn(event)
    return part.blocks if isinstance(part, KNorm) else ()


def with_scale(event: Event, scale: float) -> Event:
    """The event, broken on purpose: the same price with noise of another scale."""
    return dataclasses.replace(event, parts=(dataclasses.replace(drawn(event), scale=scale),))


def shaped_pair(kind: str, budget: Budget, case: tuple = THREE_VALUES) -> tuple[np.ndarray, np.ndarray, Event]:
    """Two tables whose released values are as far apart as any two can be, in the norm that this kind of noise
    protects.
    """
    features, fit_intercept = case
    schema = pf.Schema(features, target=pf.Numeric("y", -1, 1))
    objective, mechanism = QuadraticProblem(SQUARED, fit_intercept), pf.FunctionalMechanism(noise=kind)
    geometry = schema.geometry(intercept=fit_intercept)
    plan = mechanism.plan(PublicFacts(geometry, PrivacyParameters(budget), 2), objective)
    moments, event = plan.moments, plan.event
    tables = [np.array([[0.0, 0.0], row]) for row in itertools.product((0.0, 1.0), (-1.0, 0.0, 1.0))]
    values = [
        moments.distinct(Rows(open_table(table), schema, geometry).sum(moments), 2, "replace-one") for table in tables
    ]
    blocks = blocks_of(event)
    left, right = max(itertools.product(values, values), key=lambda pair: distance(kind, blocks, pair[0] - pair[1]))
    assert 0.99 * event.sensitivity < distance(kind, blocks, left - right) <= event.sensitivity, (
        "the pair should use all of it"
    )
    return left, right, event


def shaped_scores(
    kind: str, left: np.ndarray, right: np.ndarray, event: Event, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Likelihood ratios of real noise on either table, at the scale of the event."""

    def scores(values: np.ndarray) -> np.ndarray:
        if kind == "gaussian":
            outputs = SecureNoise().gaussian(np.tile(values, (draws, 1)), event.scale)
            return (distance(kind, (), outputs - right) ** 2 - distance(kind, (), outputs - left) ** 2) / (
                2 * event.scale**2
            )
        source, blocks = PooledNoise(), blocks_of(event)
        outputs = np.array([noised(source, values, event.flat()) for _ in range(draws)])
        return (distance(kind, blocks, outputs - right) - distance(kind, blocks, outputs - left)) / event.scale

    return scores(left), scores(right)


@pytest.mark.parametrize("kind", ["linf", "l2"])
@quick_or_full("draws", quick=[2000], full=[10_000])
def test_noise_in_one_piece_stays_under_its_claim_and_close_to_it(kind: str, draws: int) -> None:
    left, right, event = shaped_pair(kind, Budget(SHAPED_EPSILON))
    scores = shaped_scores(kind, left, right, event, draws)
    assert np.abs(np.concatenate(scores)).max() <= SHAPED_EPSILON * (1 + 1e-12), "no output tells more than epsilon"
    found = epsilon_at_least(*scores, threshold=0.5)
    assert found <= SHAPED_EPSILON
    assert found > 0.1 * SHAPED_EPSILON, "an attack this weak would prove nothing"


BLOCKS = (2, 2, 1)
MOVE = 3000
FURTHEST = np.array([MOVE, 0, 0, MOVE, MOVE])  # every block as far as it goes


def in_block_norm(scale: float, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Likelihood ratios of real noise on two tables whose blocks of values lie as far apart as they can, at the scale
    that is claimed.
    """
    part = KNorm(norm="blocks", blocks=BLOCKS, size=5, scale=scale, sensitivity=MOVE)
    source, claimed = PooledNoise(), MOVE / SHAPED_EPSILON

    def scores(values: np.ndarray) -> np.ndarray:
        outputs = [noised(source, values, (part,)) for _ in range(draws)]
        from_there, from_here = (
            [length("blocks", output - table, BLOCKS) for output in outputs] for table in (FURTHEST, 0 * FURTHEST)
        )
        return (np.array(from_there) - np.array(from_here)) / claimed

    return scores(0 * FURTHEST), scores(FURTHEST)


@quick_or_full("draws", quick=[1500], full=[10_000])
def test_block_norm_noise_stays_under_their_claim_and_a_third_of_the_noise_is_caught(draws: int) -> None:
    scores = in_block_norm(MOVE / SHAPED_EPSILON, draws)
    assert np.abs(np.concatenate(scores)).max() <= SHAPED_EPSILON * (1 + 1e-12), "no output tells more than epsilon"
    found = epsilon_at_least(*scores, threshold=1.0)
    assert 0.1 * SHAPED_EPSILON < found <= SHAPED_EPSILON
    assert epsilon_at_least(*in_block_norm(MOVE / SHAPED_EPSILON / 3, 1500), threshold=1.0) > SHAPED_EPSILON


@pytest.mark.parametrize(("kind", "case", "draws"), [("linf", THREE_VALUES, 4000), ("l2", ONE_VALUE, 2000)])
def test_half_the_noise_in_one_piece_is_caught(kind: str, case: tuple, draws: int) -> None:
    left, right, event = shaped_pair(kind, Budget(SHAPED_EPSILON), case)
    halved = with_scale(event, event.scale / 2)
    assert epsilon_at_least(*shaped_scores(kind, left, right, halved, draws), threshold=2.5) > SHAPED_EPSILON


def test_a_forgotten_block_is_caught() -> None:
    """Calibrated to the larger of the two blocks in place of their sum, as if one cube held both."""
    left, right, event = shaped_pair("linf", Budget(SHAPED_EPSILON))
    blocks = np.split(left - right, np.cumsum(blocks_of(event))[:-1])
    largest = max(int(np.abs(block).max()) for block in blocks)
    assert largest < 0.8 * event.sensitivity
    forgotten = with_scale(event, largest / SHAPED_EPSILON)
    assert np.abs(np.concatenate(shaped_scores("linf", left, right, forgotten, 200))).max() > SHAPED_EPSILON


@quick_or_full("draws", quick=[6000], full=[50_000])
def test_gaussian_noise_stays_under_its_claim_and_half_of_it_is_caught(draws: int) -> None:
    left, right, event = shaped_pair("gaussian", GAUSSIAN)
    scores = shaped_scores("gaussian", left, right, event, draws)
    assert delta_at_least(*scores, GAUSSIAN.epsilon, threshold=GAUSSIAN.epsilon) <= GAUSSIAN.delta
    assert epsilon_at_least(*scores, threshold=0.5) > 0.25 * GAUSSIAN.epsilon, "an attack this weak would prove nothing"
    halved = shaped_scores("gaussian", left, right, with_scale(event, event.scale / 2), 8000)
    assert delta_at_least(*halved, GAUSSIAN.epsilon, threshold=GAUSSIAN.epsilon) > GAUSSIAN.delta


@pytest.mark.parametrize("kind", ["linf", "l2"])
def test_neighbours_share_one_support(kind: str) -> None:
    """Precision attack: many outputs on one table are outputs on the other, low bits included."""
    source = PooledNoise()
    outputs = [{int(getattr(source, kind)(np.array([value]), 3.0)[0]) for _ in range(1500)} for value in (7, 8)]
    common = outputs[0] & outputs[1]
    assert len(common) > 0.6 * min(map(len, outputs))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("size", [1.0, 10.0, 100.0])
def test_whole_fits_stay_under_their_claim(estimator, fit_intercept: bool, size: float) -> None:
    """Coefficients of thousands of fits on neighbouring tables; bounds at sizes 1, 10 and 100."""
    schema = schema_for(estimator)
    scaled = [
        dataclasses.replace(column, high=column.low + size) if isinstance(column, pf.Numeric) else column
        for column in schema.features
    ]
    schema = pf.Schema(scaled, schema.target)
    pairs = [pair for pair in neighbours(estimator) if pair.adjacency == "replace-one"]
    pair = next(pair for pair in pairs if pair.name == "a lone member of class and level")

    def outputs(rows: list[tuple], start: int) -> np.ndarray:
        table = frame([(row[0] / 100 * size, 100 + (row[1] - 100) * size, row[2] * size, *row[3:]) for row in rows])
        models = [
            estimator(epsilon=EPSILON, schema=schema, fit_intercept=fit_intercept, random_state=start + seed).fit(table)
            for seed in range(3000)
        ]
        return np.array([[*np.ravel(model.coef_), *np.ravel(model.intercept_)] for model in models])

    left, right = outputs(pair.left, 0), outputs(pair.right, 10_000)
    direction = left[:1000].mean(axis=0) - right[:1000].mean(axis=0)
    assert epsilon_at_least(left[1000:] @ direction, right[1000:] @ direction) <= EPSILON
