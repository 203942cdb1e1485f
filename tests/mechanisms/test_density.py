"""The regression of private against public rows: how far one row moves it, that noise is chosen from public facts, and
what it converges to.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import privfit as pf
from privfit.losses import LOGISTIC
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.reweighting.base import ReweightingProblem
from privfit.mechanisms.reweighting.density_ratio import DensityRatio, OneSided
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import CachedDesign, PublicRows, Rows
from privfit.schema import RowNorms
from privfit.tables import open_table
from tests.support.audit import epsilon_at_least
from tests.support.noise import RecordingNoise

SCHEMA = pf.Schema([pf.Category("a", [0, 1]), pf.Category("b", [0, 1, 2]), pf.Numeric("x", 0, 1, bins=2)])
PUBLIC = np.array([[0, 0, 0.1], [0, 1, 0.9], [1, 2, 0.2], [1, 0, 0.8], [0, 2, 0.4]])
PRIVATE = np.array([[1, 0, 0.1], [1, 1, 0.9], [1, 2, 0.9], [0, 0, 0.8], [1, 1, 0.4], [1, 2, 0.6], [1, 0, 0.3]])
EVERY_ROW = [np.array(row) for row in itertools.product((0, 1), (0, 1, 2), (0.1, 0.9))]


def rows_of(table: np.ndarray, mechanism: DensityRatio) -> Rows:
    return Rows(open_table(table), SCHEMA, mechanism.geometry(SCHEMA), threads=1)


def contrast(mechanism: DensityRatio) -> ReweightingProblem:
    return ReweightingProblem(PublicRows.read([open_table(PUBLIC)], SCHEMA, mechanism.geometry(SCHEMA)))


def design_of(table: np.ndarray) -> np.ndarray:
    mechanism = DensityRatio()
    return PublicRows.read([open_table(table)], SCHEMA, mechanism.geometry(SCHEMA)).design.toarray()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("people", [1, 2])
def test_gradients_never_move_more_than_claimed_and_reach_it(adjacency: str, people: int) -> None:
    gradients = OneSided(
        RowNorms.of(DensityRatio().geometry(SCHEMA)),
        LOGISTIC,
        rows_per_person=people,
        replace=adjacency == "replace-one",
    )
    encoded = design_of(np.array(EVERY_ROW))
    worst = 0.0
    for rows in itertools.combinations_with_replacement(range(len(encoded)), people):
        leaving = encoded[list(rows)].sum(axis=0)
        entering = [np.zeros(encoded.shape[1])] if adjacency == "add-remove" else [people * row for row in encoded]
        for other, s, t in itertools.product(entering, (0.0, 0.5, 1.0), (0.0, 0.5, 1.0)):
            worst = max(worst, float(np.linalg.norm(s * leaving - t * other)))
    claimed = gradients.sensitivity["l2"]
    assert worst <= claimed * (1 + 1e-12)
    assert worst == pytest.approx(claimed)  # it is the best bound there is
    assert claimed == pytest.approx(people * math.sqrt(3) * (math.sqrt(2) if adjacency == "replace-one" else 1))


def test_the_papers_shortcut_would_be_too_small() -> None:
    """The paper lets the largest norm of a row stand for the root of d; two rows of levels are further apart."""
    encoded = design_of(np.array(EVERY_ROW))
    assert (
        max(np.linalg.norm(one - other) for one in encoded for other in encoded)
        > np.linalg.norm(encoded, axis=1).max() * 1.4
    )


@pytest.mark.parametrize("balanced", [True, False])
def test_minima_of_neighbours_are_as_near_as_the_noise_believes(balanced: bool) -> None:
    mechanism = DensityRatio(alpha=0.05, balanced=balanced)
    terms, against = PrivacyParameters(Budget(1.0)), contrast(mechanism)
    plan = mechanism.plan(PublicFacts(mechanism.geometry(SCHEMA), terms, len(PRIVATE)), against)
    base = mechanism.without_noise(rows_of(PRIVATE, mechanism), terms, against)
    worst = 0.0
    for place, row in itertools.product(range(len(PRIVATE)), EVERY_ROW):
        other = PRIVATE.copy()
        other[place] = row
        worst = max(
            worst, float(np.linalg.norm(mechanism.without_noise(rows_of(other, mechanism), terms, against) - base))
        )
    assert 0.1 * plan.event.sensitivity < worst * plan.event.unit < plan.event.sensitivity


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("perturbation", ["output", "objective"])
def test_it_is_the_papers_objective(balanced: bool, perturbation: str) -> None:
    private, public, alpha = design_of(PRIVATE), design_of(PUBLIC), 0.1
    shares = (1.0, 1.0) if balanced else (len(private) / 12, len(public) / 12)

    def loss(beta: np.ndarray) -> float:
        mine, theirs = np.logaddexp(0, -private @ beta).mean(), np.logaddexp(0, public @ beta).mean()
        return shares[0] * mine + shares[1] * theirs + alpha / 2 * beta @ beta

    expected = minimize(loss, np.zeros(private.shape[1]), options={"gtol": 1e-10}).x
    mechanism = DensityRatio(alpha, perturbation, balanced)  # type: ignore[arg-type]
    release = mechanism.release(
        rows_of(PRIVATE, mechanism), PrivacyParameters(Budget(1e7)), None, RecordingNoise(), contrast(mechanism)
    )
    np.testing.assert_allclose(release.value.beta, expected, atol=2e-4)


def test_noise_is_that_of_the_root_of_two_k() -> None:
    mechanism = DensityRatio(alpha=0.1)
    geometry = mechanism.geometry(SCHEMA)
    event = mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(0.5)), 1000), contrast(mechanism)).event
    assert event.kinds == ("k-norm-l2",)
    assert event.sensitivity / event.unit == pytest.approx(math.sqrt(6) / (1000 * 0.1), rel=0.02)
    assert event.scale / event.unit == pytest.approx(math.sqrt(6) / (1000 * 0.1 * 0.5), rel=0.02)


@pytest.mark.parametrize("perturbation", ["output", "objective"])
def test_under_add_remove_nothing_depends_on_the_number_of_rows(perturbation: str) -> None:
    """The paper's noise grows when a row leaves, which tells that it left (ALGORITHMS: no finite epsilon)."""
    mechanism = DensityRatio(0.1, perturbation)  # type: ignore[arg-type]
    terms = PrivacyParameters(Budget(1.0), "add-remove", 1, 7)
    calls = []
    for table in (PRIVATE, PRIVATE[1:], PRIVATE[:2]):
        noise = RecordingNoise()
        release = mechanism.release(rows_of(table, mechanism), terms, None, noise, contrast(mechanism))
        calls.append((release.event, [(call.kind, call.values.shape, call.scale) for call in noise.calls]))
    assert calls[0] == calls[1] == calls[2]


class Printed(DensityRatio):
    """The paper's own noise: its scale knows how many private rows there are."""

    def release(self, rows, terms, ledger, noise, objective):
        return super().release(rows, replace(terms, expected_rows=rows.n_rows), ledger, noise, objective)


def test_the_printed_number_of_rows_is_caught() -> None:
    mechanism, terms, scales = Printed(), PrivacyParameters(Budget(1.0), "add-remove", 1, 7), []
    for table in (PRIVATE, PRIVATE[1:]):
        noise = RecordingNoise()
        mechanism.release(rows_of(table, mechanism), terms, None, noise, contrast(mechanism))
        scales.append(noise.calls[0].scale)
    d, far = len(design_of(PRIVATE)[0]), 1e4 * max(scales)
    loss = (
        far / scales[0] - far / scales[1] + d * math.log(scales[0] / scales[1])
    )  # of the two densities of noise, far out
    assert abs(loss) > 100 * terms.budget.epsilon


def test_add_remove_needs_a_public_number_and_charges_nothing_without(tmp_path) -> None:
    ledger = pf.Ledger(tmp_path / "budget.db", epsilon=1.0)
    mechanism = DensityRatio()
    with pytest.raises(pf.PrivacyError, match="expected_rows"):
        mechanism.release(
            rows_of(PRIVATE, mechanism),
            PrivacyParameters(Budget(1.0), "add-remove"),
            ledger,
            RecordingNoise(),
            contrast(mechanism),
        )
    assert ledger.spent == 0


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("people", [1, 2])
def test_recorded_values_of_neighbours_are_within_the_sensitivity(adjacency: str, people: int) -> None:
    mechanism = DensityRatio(alpha=0.2)
    terms = PrivacyParameters(Budget(0.3), adjacency, people, 7)  # type: ignore[arg-type]
    other = (
        PRIVATE[people:]
        if adjacency == "add-remove"
        else np.vstack([PRIVATE[people:], np.tile([0, 2, 0.9], (people, 1))])
    )
    noises = [RecordingNoise(), RecordingNoise()]
    events = [
        mechanism.release(rows_of(table, mechanism), terms, None, noise, contrast(mechanism)).event
        for table, noise in zip((PRIVATE, other), noises, strict=True)
    ]
    (first,), (second,) = noises[0].calls, noises[1].calls
    assert (first.kind, first.scale) == (second.kind, second.scale) == ("l2", events[0].scale)
    moved = np.linalg.norm(first.values - second.values)
    assert 0 < moved <= events[0].sensitivity
    assert events[0].scale >= events[0].sensitivity / 0.3


@pytest.mark.parametrize("alpha", [0, -1, math.inf, "0.1", True])
def test_an_alpha_that_means_nothing_is_refused(alpha: object) -> None:
    with pytest.raises(pf.PrivacyError, match="alpha="):
        DensityRatio(alpha).check()  # type: ignore[arg-type]


def test_neighbours_are_told_apart_no_better_than_epsilon_allows() -> None:
    """The ratio of likelihoods of two noisy minima; with a tenth of the noise it is caught.

    Slopes are a half here, and in seven columns most of the noise points elsewhere.
    """
    mechanism, epsilon = DensityRatio(alpha=2.0), 1.0
    other = PRIVATE.copy()
    other[0] = [0, 2, 0.9]
    minima, scale = [], 0.0
    for table in (PRIVATE, other):
        noise = RecordingNoise()
        mechanism.release(
            rows_of(table, mechanism), PrivacyParameters(Budget(epsilon)), None, noise, contrast(mechanism)
        )
        minima.append(noise.calls[0].values)
        scale = noise.calls[0].scale

    def told_apart(scale: float) -> float:
        source = SeededNoise(5)
        drawn = [np.array([source.l2(own, scale) for _ in range(8000)]) for own in minima]
        scores = [np.linalg.norm(one - minima[1], axis=1) - np.linalg.norm(one - minima[0], axis=1) for one in drawn]
        return epsilon_at_least(*scores)

    assert told_apart(scale) <= epsilon
    assert told_apart(scale / 10) > epsilon


def test_curvature_is_that_of_both_kinds_of_rows_also_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finer estimate from private rows alone would mislead the solver."""
    mechanism, many = DensityRatio(), np.repeat(PRIVATE, 3000, axis=0)
    terms = PrivacyParameters(Budget(1.0))
    whole = mechanism.without_noise(rows_of(many, mechanism), terms, contrast(mechanism))
    monkeypatch.setattr("privfit.rows.cached_design.SAMPLE_VALUES", 1)
    misled: list[bool] = []
    monkeypatch.setattr(CachedDesign, "hessian", lambda *_: misled.append(True))
    np.testing.assert_allclose(
        mechanism.without_noise(rows_of(many, mechanism), terms, contrast(mechanism)), whole, atol=1e-5
    )
    assert not misled
