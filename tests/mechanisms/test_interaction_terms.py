"""InteractionTerms for pairs of columns: every bound against all exchanges of a row, what is planned and charged, and
whether planted pairs are found.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.losses import LOGISTIC, tempered_logistic
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation import interaction_terms as pairs
from privfit.mechanisms.perturbation.defaults import FLAT_ROWS, FOR_CERTIFICATE
from privfit.mechanisms.perturbation.gaussian_noise import losses_beside
from privfit.mechanisms.perturbation.interaction_terms import (
    LARGEST_CELL,
    MOST_LOOKS,
    UNIT,
    BudgetSplit,
    IntegerGradients,
    InteractionTerms,
    enough_rows,
    menu_for,
)
from privfit.mechanisms.perturbation.objective import automatic_interactions
from privfit.mechanisms.perturbation.problem import ERMProblem
from privfit.privacy import Budget, Event, PrivacyParameters, exact
from privfit.privacy.gaussian import gaussian_delta
from privfit.privacy.parts import Laplace, Selection
from privfit.rows import CachedDesign, Interactions, Rows
from privfit.rows.layout import FINE_CELLS
from privfit.tables import open_table
from tests.support.noise import RecordingNoise
from tests.support.objective_noise import steepest_pull
from tests.support.pairs import CROSSED, SCHEMA, VALUES, measured, planted, weights_of

LOSSES = [tempered_logistic(0.5, 1.0), tempered_logistic(0.35, 4.0), LOGISTIC]


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_no_exchange_of_a_row_moves_scores_or_sums_beyond_their_bounds(loss, adjacency: str) -> None:
    slopes = IntegerGradients(loss, 2 if adjacency == "replace-one" else 1)
    people = [(*value, label) for value in VALUES for label in ("no", "yes")]
    base = [(3.0, "n", "m", 80_000.0, "no")] * 60 + [
        (69.0, "w", "f", 0.0, "yes")
    ] * 60  # two pairs that the first person pulls opposite ways
    furthest = {"score": 0.0, "sums": 0.0, "curvatures": 0.0}
    for seed, size in ((0, 0.0), (1, 0.5), (2, 8.0)):
        weights = weights_of(seed, size)
        tables = [[*base, person] for person in people] + ([base] if adjacency == "add-remove" else [])
        found = [measured(rows, weights, slopes) for rows in tables]
        for (one, r, c), (other, r2, c2) in itertools.combinations(found if adjacency == "replace-one" else [], 2):
            _note(furthest, one, other, r, r2, c, c2)
        if adjacency == "add-remove":
            for with_person in found[:-1]:
                _note(
                    furthest, with_person[0], found[-1][0], with_person[1], found[-1][1], with_person[2], found[-1][2]
                )
    reached = {
        "score": furthest["score"] / slopes.score_sensitivity,
        "sums": furthest["sums"] / slopes.sums_sensitivity,
    }
    assert max(reached.values()) <= 1
    for what, least in (("score", 0.45), ("sums", 0.95)):
        assert reached[what] > least, reached
    assert furthest["curvatures"] > 0.3 * slopes.changed * slopes.curvatures.max()


def _note(furthest: dict, one: list, other: list, r: list, r2: list, c: list, c2: list) -> None:
    moved = [a - b for a, b in zip(one, other, strict=True)]
    furthest["score"] = max(furthest["score"], max(moved) - min(moved))
    slope_norm, of_curvatures = (
        [int(np.abs(a - b).sum()) for a, b in zip(*both, strict=True)] for both in ((r, r2), (c, c2))
    )
    furthest["sums"] = max(furthest["sums"], *map(sum, zip(slope_norm, of_curvatures, strict=True)))
    furthest["curvatures"] = max(furthest["curvatures"], *of_curvatures)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_tables_slope_norm_follow_the_loss_and_keep_its_bounds(loss) -> None:
    slopes = IntegerGradients(loss, 1)
    middle, at = slopes.slopes.shape[1] // 2, 100
    for line, side in ((0, -1.0), (1, 1.0)):
        score = np.array([(at + 0.5) / (1 << pairs.STEP_BITS)])
        assert slopes.slopes[line, middle + at] == pytest.approx(
            float(loss.slope(score, np.array([side]))[0]) * UNIT, abs=1
        )
        assert slopes.curvatures[line, middle + at] == pytest.approx(
            float(loss.curvature(score, np.array([side]))[0]) * slopes.curvature_unit, abs=1
        )
    assert np.abs(slopes.slopes).max() <= math.ceil(loss.most_slope * UNIT)
    assert slopes.curvatures.min() >= 0
    assert slopes.curvatures.max() <= math.ceil(loss.most_curvature * slopes.curvature_unit)
    steps = np.diff(slopes.by_chance)
    assert steps.min() >= 0
    assert len(slopes.by_chance) == LARGEST_CELL + 1
    assert slopes.score(np.array([10 * UNIT]), np.array([LARGEST_CELL + 5])) == slopes.score(
        np.array([10 * UNIT]), np.array([LARGEST_CELL])
    )


@pytest.mark.parametrize(
    ("loss", "more"),
    [
        (tempered_logistic(0.5, 1.0), 1.001),
        (tempered_logistic(0.5, 1.25), 1.1),
        (tempered_logistic(0.35, 9.0), 1.1),
        (LOGISTIC, 1.001),
    ],
)
def test_curvatures_ride_along_with_slopes_for_nothing_or_little(loss, more: float) -> None:
    """A row with a large slope hardly curves: with |s| = q the logistic loss has curvature q (1 - q), and q + q (1 - q)
    is at most 1.
    """
    slopes = IntegerGradients(loss, 1)
    assert np.abs(slopes.slopes).max() <= slopes.sums_sensitivity <= more * np.abs(slopes.slopes).max()


# -- the plan --------------------------------------------------------------------------------------


def priced(tables: InteractionTerms) -> list[Fraction]:
    """What every choice and every table costs."""
    reaches = (
        (tables.gradients.score_sensitivity, tables.choice_scale),
        (tables.gradients.sums_sensitivity, tables.table_scale),
    )
    return [Fraction(reach) / Fraction(scale) for reach, scale in reaches for _ in range(tables.split.pairs)]


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 0.7, 1.6, 3.0, 1e4])
@pytest.mark.parametrize("number", [1, 2, 6])
def test_shares_add_up_to_epsilon_and_never_more(epsilon: float, number: int) -> None:
    mechanism = pf.ObjectivePerturbation(interactions=number)
    terms = PrivacyParameters(Budget(epsilon), "replace-one", 3)
    geometry = mechanism.geometry(SCHEMA, ERMProblem(LOGISTIC), "splines")
    facts = PublicFacts(geometry, terms, 1000)
    plan = mechanism.plan(facts, ERMProblem(LOGISTIC))
    tables = plan.terms
    assert tables is not None
    assert tables.split == BudgetSplit.of(number, gaussian=False, signal=1000 * epsilon / 3)
    assert tables.gradients == IntegerGradients(plan.gradients.loss, 6)
    assert tables.epsilon == exact(epsilon)
    left = tables.split.left_of(terms.budget)
    spent = exact(left.epsilon) + sum(priced(tables))
    assert exact(epsilon) * Fraction(999, 1000) < spent <= exact(epsilon)
    weights = pf.ObjectivePerturbation().plan(replace(facts, parameters=replace(terms, budget=left)), plan.problem)
    event = plan.event
    assert event.parts == (*weights.event.parts, *tables.parts())
    assert (event.epsilon, event.delta) == (epsilon, 0.0)
    assert [type(part) for part in tables.parts()] == [Selection, Laplace] * number
    assert event.n_values == weights.event.n_values + sum(part.size for part in tables.parts()[1::2])
    last = event.parts[-1]
    assert isinstance(last, Laplace)
    assert last.scale / last.unit == tables.table_scale / UNIT
    assert sum(part.epsilon for part in tables.parts()) == pytest.approx(float(sum(priced(tables))))


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.6, 3.0])
@pytest.mark.parametrize("number", [1, 2, 5])
def test_gaussian_weights_and_pure_steps_together_stay_within_delta(epsilon: float, number: int) -> None:
    """Against a sum over all outcomes of coins, one for each step, and with less noise than for weights that have their
    share alone.
    """
    delta = 1e-6
    mechanism = pf.ObjectivePerturbation(noise="gaussian", interactions=number)
    terms = PrivacyParameters(Budget(epsilon, delta))
    geometry = mechanism.geometry(SCHEMA, ERMProblem(LOGISTIC), "splines")
    facts = PublicFacts(geometry, terms, 1000)
    plan = mechanism.plan(facts, ERMProblem(LOGISTIC))
    tables = plan.terms
    assert tables is not None
    shares = BudgetSplit.of(number, gaussian=True)
    assert tables == InteractionTerms(
        IntegerGradients(plan.gradients.loss, 2), Interactions(geometry), exact(epsilon), shares
    )
    e = epsilon * (1 - FOR_CERTIFICATE)
    steps = [float(step) for step in priced(tables)]
    shift = steepest_pull(plan)
    flat = plan.gradients.loss.taper * plan.gradients.slope_norm["linf"] * plan.gradients.norms.l2**2 / plan.ridge
    assert flat <= (e - sum(steps)) * FLAT_ROWS
    total = 0.0
    for signs in itertools.product((1, -1), repeat=len(steps)):
        chance = math.prod(1 / (1 + math.exp(-sign * step)) for sign, step in zip(signs, steps, strict=True))
        left = e - sum(sign * step for sign, step in zip(signs, steps, strict=True))
        corners = [(left - flat, 0.0), (left - flat, shift), (left, shift), (left, 2 * shift)]
        total += chance * sum(gaussian_delta(eps, mu) if mu else max(0.0, 1 - math.exp(eps)) for eps, mu in corners)
    assert 0.5 * delta < total <= delta
    assert (plan.event.epsilon, plan.event.delta) == (epsilon, delta)
    without = pf.ObjectivePerturbation(noise="gaussian")
    share = replace(terms, budget=Budget(float(shares.weights) * epsilon, delta))
    alone = without.plan(replace(facts, parameters=share), ERMProblem(LOGISTIC))
    whole = without.plan(facts, ERMProblem(LOGISTIC))
    assert whole.sd < plan.sd < 0.96 * alone.sd


@pytest.mark.parametrize("pairs", [0, 1, 2, 5, 20])
@pytest.mark.parametrize("gaussian", [False, True])
def test_weights_keep_the_larger_part_however_many_pairs(pairs: int, gaussian: bool) -> None:
    shares = BudgetSplit.of(pairs, gaussian)
    assert shares.choices + shares.tables + shares.weights == 1
    assert shares.tables <= Fraction(54 if gaussian else 36, 100)
    assert shares.weights >= Fraction(34 if gaussian else 56, 100)
    assert shares.choices == Fraction(12 if gaussian else 8, 100)
    assert [BudgetSplit.of(own, gaussian).tables for own in (1, 2)] == (
        [Fraction(18, 100), Fraction(24, 100)] if gaussian else [Fraction(12, 100), Fraction(16, 100)]
    )


@pytest.mark.parametrize("gaussian", [False, True])
def test_tables_have_more_of_epsilon_where_weights_need_less(gaussian: bool) -> None:
    shares = [BudgetSplit.of(2, gaussian, signal) for signal in (0, 30_000, 60_000, 90_000, 1e9)]
    more = Fraction(3, 2) if gaussian else 1
    assert [share.tables for share in shares] == [Fraction(part, 100) * more for part in (16, 16, 24, 32, 32)]
    assert [share.choices for share in shares] == [
        Fraction(part, 100) * more for part in ((8,) * 5 if gaussian else (8, 8, 12, 16, 16))
    ]
    assert BudgetSplit.of(3, gaussian, 120_000).tables == Fraction(36, 100) * more
    assert all(share.choices + share.tables + share.weights == 1 for share in shares)


@pytest.mark.parametrize(("rows", "epsilon", "signal"), [(10_000, 4.0, 40_000), (60_000, 1.0, 40_960), (500, 1.0, 500)])
def test_the_share_of_tables_follows_rows_that_are_looked_at(rows: int, epsilon: float, signal: float) -> None:
    """From public facts alone: of many rows 40,960 are looked at for an epsilon of 1."""
    mechanism = pf.ObjectivePerturbation(interactions=1)
    geometry = mechanism.geometry(SCHEMA, ERMProblem(LOGISTIC), "splines")
    facts = PublicFacts(geometry, PrivacyParameters(Budget(epsilon)), rows)
    terms = mechanism.plan(facts, ERMProblem(LOGISTIC)).terms
    assert terms is not None
    assert terms.split == BudgetSplit.of(1, gaussian=False, signal=signal)


@pytest.mark.parametrize("rows", [300, 5_000, 40_000])
@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.4, 1.6, 4.0])
@pytest.mark.parametrize("columns", [3, 14, 50])
def test_a_delta_never_means_more_noise_or_more_ridge(rows: int, epsilon: float, columns: int) -> None:
    """Both forms are planned from public facts, and the Gaussian one is taken only where it is better."""
    features: list[pf.Numeric | pf.Category] = [pf.Numeric(f"n{i}", 0, 1) for i in range(columns // 2)]
    features += [pf.Category(f"c{i}", list(range(2 + 3 * (i % 5)))) for i in range(columns - columns // 2)]
    schema = pf.Schema(features, pf.Category("y", [0, 1]))
    mechanism = pf.ObjectivePerturbation()
    geometry = mechanism.geometry(schema, ERMProblem(LOGISTIC), "splines")
    budgets = Budget(epsilon), Budget(epsilon, 1e-6)
    pure, either = (
        mechanism.plan(PublicFacts(geometry, PrivacyParameters(budget), rows), ERMProblem(LOGISTIC))
        for budget in budgets
    )
    assert either.sd <= pure.sd
    assert either.ridge <= pure.ridge


def test_pairs_follow_the_kind_of_noise_that_is_used() -> None:
    """Few columns: pure noise is no more than Gaussian noise with this delta, so that the rule for pure noise counts.

    Many: the other one.
    """
    narrow, wide = (
        CROSSED,
        pf.Schema([pf.Category(f"c{i}", list(range(9))) for i in range(14)], pf.Category("y", [0, 1])),
    )
    for schema, gaussian in ((narrow, False), (wide, True)):
        mechanism = pf.ObjectivePerturbation(interactions="auto")
        geometry = mechanism.geometry(schema, ERMProblem(LOGISTIC), "splines")
        facts = PublicFacts(geometry, PrivacyParameters(Budget(1.0, 1e-6)), 30_000)
        plan = mechanism.plan(facts, ERMProblem(LOGISTIC))
        assert (plan.event.delta > 0) == gaussian
        assert plan.terms is not None
        assert plan.terms.split == BudgetSplit.of(2 if gaussian else 1, gaussian)


@pytest.mark.parametrize("steps", [(), (0.3,), (0.1, 0.1, 0.2), (0.05,) * 4 + (0.3,) * 3])
def test_what_coins_beside_give_away_is_a_law(steps: tuple[float, ...]) -> None:
    losses, chances = losses_beside(steps)
    assert np.exp(chances).sum() == pytest.approx(1)
    assert losses.max() == pytest.approx(sum(steps))
    assert (np.exp(chances) * np.exp(-losses)).sum() == pytest.approx(1)  # the other law
    assert len(losses) == len(set(np.round(losses, 9)))


def test_one_pair_from_twenty_thousand_two_from_forty_and_three_from_a_hundred_and_twenty() -> None:
    def number(rows: int | None, epsilon: float, people: int = 1, gaussian: bool = False) -> int:
        return automatic_interactions(PrivacyParameters(Budget(epsilon), "replace-one", people), rows, gaussian)

    assert [number(rows, 1.0) for rows in (19_999, 20_000, 39_999, 40_000, 119_999, 120_000, 10**9)] == [
        *(0, 1, 1, 2, 2, 3, 3)
    ]
    assert [number(rows, 1.0, gaussian=True) for rows in (9_999, 10_000, 19_999, 20_000, 10**9)] == [0, 1, 1, 2, 2]
    assert [number(40_000, epsilon) for epsilon in (0.4, 0.5, 1.0)] == [0, 1, 2]
    assert number(40_000, 1.0, 2) == 1
    assert number(None, 100.0) == 0


def test_rows_looked_at_are_enough_for_the_tables_that_are_planned() -> None:
    """Ten million rows: at a small epsilon more of them are looked at; where pairs are so many that this would take too
    long, there are fewer tables, or none.
    """
    few, many = CROSSED, pf.Schema([pf.Category(f"c{i}", [0, 1]) for i in range(90)], pf.Category("y", [0, 1]))
    mechanism, risk = pf.ObjectivePerturbation(interactions="auto"), ERMProblem(LOGISTIC)
    for schema, wanted in ((few, [2, 2, 2, 2]), (many, [1, 0, 0, 0])):
        geometry = mechanism.geometry(schema, risk, "splines")
        for epsilon, number in zip((2.0, 0.5, 0.1, 0.01), wanted, strict=True):
            terms, menu = PrivacyParameters(Budget(epsilon)), len(menu_for(geometry, risk))
            assert mechanism._n_interactions(PublicFacts(geometry, terms, 10**7), risk) == number
            rows = enough_rows(terms, menu)
            assert rows * menu <= MOST_LOOKS
            assert number == (rows * epsilon >= 20_000) + (rows * epsilon >= 40_000)
    assert enough_rows(PrivacyParameters(Budget(1.0), rows_per_person=3), 12) == 3 * enough_rows(
        PrivacyParameters(Budget(1.0)), 12
    )


def test_every_draw_is_made_with_the_planned_scale_after_the_charge(tmp_path) -> None:
    rows = planted(4000)
    ledger = pf.Ledger(tmp_path / "people.db", epsilon=2.0)
    mechanism = pf.ObjectivePerturbation(interactions=2)
    risk = ERMProblem(LOGISTIC)
    geometry = mechanism.geometry(CROSSED, risk, "splines")
    noise = RecordingNoise()
    charged_at: list[int] = []
    charge = ledger.charge
    ledger.charge = lambda event, **facts: (charged_at.append(len(noise.calls)), charge(event, **facts))[1]
    release = mechanism.release(
        Rows(open_table(rows), CROSSED, geometry), PrivacyParameters(Budget(1.5)), ledger, noise, risk
    )
    assert charged_at == [0]
    assert ledger.spent == 1.5
    selections = [call for call in noise.calls if call.kind == "permute-and-flip"]
    tables = [call for call in noise.calls if call.kind == "laplace"][-2:]
    shares = BudgetSplit.of(2, gaussian=False)
    plan = InteractionTerms(IntegerGradients(release.value.loss, 2), Interactions(geometry), exact(1.5), shares)
    assert {call.scale for call in selections} == {plan.choice_scale}
    assert len(selections) == 2
    assert [call.scale for call in tables] == [plan.table_scale] * 2
    sizes = [2 * plan.interactions.n_cells(table.columns) for table in release.value.pairs]
    assert [len(call.values) for call in tables] == sizes
    assert len({table.columns for table in release.value.pairs}) == 2
    assert release.event.mechanism.endswith("2 tables of columns chosen privately")


def test_rows_looked_at_are_dealt_by_coins_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "ENOUGH_ROWS", 500)
    seen: list[int] = []
    cells = CachedDesign.cells
    monkeypatch.setattr(CachedDesign, "cells", lambda kept, *given: (seen.append(kept.n_rows), cells(kept, *given))[1])
    pf.LogisticRegression(4.0, schema=CROSSED, interactions=1, random_state=0).fit(planted(4000))
    pf.LogisticRegression(4.0, schema=CROSSED, interactions=1, random_state=0).fit(planted(400))
    assert 350 < seen[0] < 650
    assert seen[1] == 400


def test_a_file_that_grows_after_the_charge_is_not_read_again(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rows = tmp_path / "people.csv", planted(300)
    rows.write_csv(path)
    charge = pf.Ledger.charge

    def charged_and_grown(own: pf.Ledger, event, **facts) -> None:
        charge(own, event, **facts)
        pl.concat([rows, rows]).write_csv(path)

    monkeypatch.setattr(pf.Ledger, "charge", charged_and_grown)
    model = pf.LogisticRegression(20.0, schema=CROSSED, interactions=12, ledger=pf.Ledger(epsilon=20.0)).fit(path)
    assert "in fine steps" in str(model.report_)


# -- what it is for --------------------------------------------------------------------------------


def test_a_planted_pair_is_found_and_taken_away_from_the_errors() -> None:
    train, test = planted(30_000), planted(10_000, 1)
    paired = pf.LogisticRegression(1.0, schema=CROSSED, random_state=3).fit(train)
    plain = pf.LogisticRegression(1.0, schema=CROSSED, interactions=0, random_state=3).fit(train)
    assert "u x w" in str(paired.report_)
    assert "chosen" not in str(plain.report_)
    assert 1 - paired.score(test.drop("y"), test["y"]) < 0.75 * (1 - plain.score(test.drop("y"), test["y"]))
    names = list(paired.get_feature_names_out())
    assert names[-9:] == [f"u_{one} x w_{other}" for one in "abc" for other in "abc"]
    table = paired.coef_[0, -9:].reshape(3, 3)
    hit = (np.add.outer(np.arange(3), np.arange(3)) % 3) == 0
    assert table[hit].min() > table[~hit].max()


def test_a_number_with_a_value_of_its_own_kind_gets_fine_steps() -> None:
    rng = np.random.default_rng(3)
    x = np.where(rng.uniform(size=40_000) < 0.03, 0.317, rng.uniform(0, 1, 40_000))
    odds = np.where(x == 0.317, 3.0, -1.0)
    y = (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-odds))).astype(int)
    frame = planted(len(x)).with_columns(x=pl.Series(x), y=pl.Series(y))
    train, test = frame[:30_000], frame[30_000:]
    model = pf.LogisticRegression(1.0, schema=CROSSED, random_state=0).fit(train)
    assert "x in fine steps" in str(model.report_)
    inside = test.filter(pl.col("x") == 0.317).drop("y")
    assert (model.predict(inside) == 1).mean() > 0.9
    plain = pf.LogisticRegression(1.0, schema=CROSSED, interactions=0, random_state=0).fit(train)
    assert (plain.predict(inside) == 1).mean() < 0.5


def test_a_stream_gives_what_its_table_gives() -> None:
    rows = planted(3000)
    models = [
        pf.LogisticRegression(10.0, schema=CROSSED, interactions=12, random_state=0).fit(own)
        for own in (rows, rows.to_arrow().to_reader())
    ]
    assert "fine" in str(models[1].report_)
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_where_columns_add_up_little_is_lost() -> None:
    rng = np.random.default_rng(8)
    losses = []
    for seed in range(4):
        frame = planted(40_000, seed)
        odds = 2 * (frame["u"] == "a").to_numpy() + 3 * (frame["x"].to_numpy() - 0.5) - 0.7
        frame = frame.with_columns(y=pl.Series((rng.uniform(size=40_000) < 1 / (1 + np.exp(-odds))).astype(int)))
        train, test = frame[:30_000], frame[30_000:]
        models = [
            pf.LogisticRegression(1.0, schema=CROSSED, interactions=q, random_state=seed).fit(train) for q in (1, 0)
        ]
        scores = [model.score(test.drop("y"), test["y"]) for model in models]
        losses.append(scores[1] - scores[0])
    assert np.mean(losses) < 0.004


def test_steps_know_the_noise_on_their_sums_and_which_cells_lie_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, usual = [], pairs.expected_steps

    def noted(slopes, curvatures, scales, in_order):
        seen.append((scales, in_order, len(slopes) == FINE_CELLS))
        return usual(slopes, curvatures, scales, in_order)

    monkeypatch.setattr(pairs, "expected_steps", noted)
    model = pf.LogisticRegression(4.0, schema=CROSSED, interactions=4, random_state=0).fit(planted(20_000))
    parts = [part for part in Event.from_dict(model.report_.event).parts if part.purpose == "interaction terms"]
    assert len(seen) == len(parts) == 4
    for (scales, in_order, fine), part in zip(seen, parts, strict=True):
        assert scales[0] == part.scale / UNIT
        assert scales[1] >= scales[0]
        assert in_order == fine
    assert {in_order for _, in_order, _ in seen} == {False, True}


def test_the_same_seed_gives_the_same_tables_and_secret_noise_makes_them_private() -> None:
    frame = planted(3000)
    one, other = (pf.LogisticRegression(10.0, schema=CROSSED, random_state=5).fit(frame) for _ in range(2))
    assert np.array_equal(one.coef_, other.coef_)
    ledger = pf.Ledger(epsilon=10.0)
    secret = pf.LogisticRegression(10.0, schema=CROSSED, ledger=ledger).fit(frame)
    assert secret.report_.private
    assert "u x w" in str(secret.report_)
    assert ledger.remaining == 0
