"""Algorithm 3 of PrivateERM, the choice among regularisers: how rows are partition to parts, what one row touches, how
mistakes are counted and what is charged.
"""

from __future__ import annotations

import numpy as np
import pytest

from privfit.baselines.erm import LOSSES
from privfit.mechanisms import ERMProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.printed_erm import PrintedObjective, PrintedOutput, Tuned
from privfit.mechanisms.perturbation.tuning import partition
from privfit.privacy import SecureNoise, SeededNoise
from privfit.rows import CachedDesign, DesignSubset, Rows
from privfit.tables import open_table
from tests.baselines import CORNERS, SCHEMA, DealingNoise, release_of, small_table, terms


def parts_of(table: np.ndarray, place: np.ndarray, parts: int) -> list[DesignSubset]:
    geometry = PrintedObjective().geometry(SCHEMA, ERMProblem(LOSSES["logistic"]), "slope")
    kept = CachedDesign(Rows(open_table(table), SCHEMA, geometry, threads=1))
    return [DesignSubset(kept, place == part) for part in range(parts)]


def tuned(kind: type = PrintedObjective, values: tuple[float, ...] = (1e-3, 1e-2, 1e-1)) -> Tuned:
    return Tuned(candidates=tuple(kind(regularisation=value, share=1 / (len(values) + 1)) for value in values))


@pytest.mark.parametrize("source", [SeededNoise(0), SecureNoise()], ids=["seeded", "secure"])
def test_every_part_is_as_likely_as_any_other(source) -> None:
    place = partition(60_000, 6, source)
    counts = np.bincount(place, minlength=6)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 45  # chi-square with 5 degrees of freedom: once in 10^8
    pairs = np.bincount(6 * place[:-1].astype(int) + place[1:], minlength=36)
    assert ((pairs - 60_000 / 36) ** 2 / (60_000 / 36)).sum() < 110


def test_parts_add_up_to_all_rows() -> None:
    table = small_table(30_000)
    place = partition(len(table), 4, SeededNoise(1))
    weights, slope = np.array([[0.7], [0.1], [-0.4], [0.2]]), LOSSES["logistic"].slope
    parts = parts_of(table, place, 4)
    everything = parts_of(table, np.zeros(len(table)), 1)[0]
    assert [part.n_rows for part in parts] == np.bincount(place).tolist()
    np.testing.assert_array_equal(
        sum(part.gradient(weights, slope, 1.0) for part in parts), everything.gradient(weights, slope, 1.0)
    )


def test_mistakes_are_counted_exactly_wherever_a_row_stands() -> None:
    table = small_table(20_000)
    table[::50, 0], table[::50, 1] = 0.5, 1  # on the fence, but for rounding
    weights = np.array([[0.2], [0.3], [-0.1], [0.1]])
    order = np.random.default_rng(0).permutation(len(table))
    everything = np.zeros(len(table))
    counts = {
        parts_of(table[shuffled], everything, 1)[0].mistakes(weights) for shuffled in (slice(None), order, order[::-1])
    }
    assert len(counts) == 1
    off_the_fence = np.abs(0.2 * table[:, 0] + weights[1:, 0][table[:, 1].astype(int)]) > 1e-4
    score = 0.2 * table[:, 0] + weights[1:, 0][table[:, 1].astype(int)]
    wrong = ((score > 0) != (table[:, 2] > 0))[off_the_fence].sum()
    assert wrong <= counts.pop() <= wrong + (~off_the_fence).sum()


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e12])
def test_no_float_rounds_while_mistakes_are_counted(size, monkeypatch) -> None:
    """Weights are whole, and so small that sums with features in steps of 2^-16 stay within 53 bits."""
    part, seen, plain = parts_of(small_table(50), np.zeros(50), 1)[0], [], DesignSubset._predictors
    monkeypatch.setattr(DesignSubset, "_predictors", lambda self, weights: seen.append(weights) or plain(self, weights))
    part.mistakes(size * np.random.default_rng(0).normal(size=(4, 1)))
    (weights,) = seen
    assert np.array_equal(weights, np.rint(weights))
    assert 2**30 < np.abs(weights).sum() <= 2**37


@pytest.mark.parametrize("kind", [PrintedObjective, PrintedOutput])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_row_touches_one_part_only(kind, adjacency) -> None:
    """With the same deal and the same noise, changing a row changes one candidate's fit or the mistakes, never two of
    them.
    """
    table, given = small_table(60), terms(1.0, adjacency, expected_rows=60)
    place = partition(len(table), 4, SeededNoise(3))
    touched = set()
    for row in range(0, len(table), 3):
        changed = table.copy()
        changed[row] = (-table[row, 0], 2 - table[row, 1], 1 - table[row, 2])
        right = changed if adjacency == "replace-one" else np.delete(table, row, axis=0)
        left_asked = fitted_minima(kind, table, place, given)
        right_asked = fitted_minima(kind, right, place if adjacency == "replace-one" else np.delete(place, row), given)
        moved = {
            i
            for i, (a, b) in enumerate(zip(left_asked, right_asked, strict=True))
            if not np.allclose(a, b, rtol=0, atol=1)
        }
        assert moved <= {int(place[row])}
        touched |= moved
    assert touched == {0, 1, 2}


def fitted_minima(kind: type, table: np.ndarray, place: np.ndarray, given) -> list[np.ndarray]:
    """The minima that noise is added to, one a candidate, in steps of their lattices."""
    noise = DealingNoise(3, place)
    release_of(tuned(kind), ERMProblem(LOSSES["logistic"]), table, given, noise)
    return [call.values for call in noise.calls if call.kind == ("laplace" if kind is PrintedObjective else "l2")]


@pytest.mark.parametrize("people", [1, 3])
def test_the_choice_has_the_exponent_of_the_paper(people) -> None:
    noise = DealingNoise()
    release_of(tuned(), ERMProblem(LOSSES["huber"]), small_table(200), terms(0.5, people=people), noise)
    (call,) = [call for call in noise.calls if call.kind == "permute-and-flip"]
    assert call.scale == pytest.approx(2 * people / 0.5)
    assert all(-200 <= score <= 0 for score in call.values)


def test_several_rows_a_person_get_a_share_of_epsilon_each() -> None:
    risk = ERMProblem(LOSSES["logistic"])
    geometry = PrintedObjective().geometry(SCHEMA, risk, "slope")
    three = tuned().plan(PublicFacts(geometry, terms(1.5, people=3), 4000), risk)
    one = tuned().plan(PublicFacts(geometry, terms(0.5), 4000), risk)
    assert [plan.sd for plan in three.candidates] == pytest.approx([plan.sd for plan in one.candidates])
    assert (three.event.epsilon, three.event.rows_per_person) == (1.5, 3)


def test_parts_without_rows_are_fitted_all_the_same() -> None:
    release = release_of(
        tuned(values=(0.1,) * 9), ERMProblem(LOSSES["logistic"]), [CORNERS[0], CORNERS[-1]], terms(), SeededNoise(0)
    )
    assert np.isfinite(release.value.weights).all()
