"""LogisticRegression with tables for pairs of columns, as a user meets it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import privfit as pf
from privfit.losses import LOGISTIC
from privfit.mechanisms import ERMProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.interaction_terms import menu_for
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Interactions
from tests.support.model_files import rewrite
from tests.support.pairs import CROSSED, planted

FRAME = planted(3000)


def fitted(**settings) -> pf.LogisticRegression:
    return pf.LogisticRegression(**({"epsilon": 10.0, "schema": CROSSED, "random_state": 2} | settings)).fit(FRAME)


def has_tables(model: pf.LogisticRegression) -> bool:
    return bool(model._pairs)


@pytest.mark.parametrize("tables", [3, 12])
def test_scores_are_the_sum_of_the_coefficients_that_names_say(tables: int) -> None:
    model = fitted(interactions=tables)  # twelve are all: ten pairs and two numbers by themselves
    names, coef = list(model.get_feature_names_out()), model.coef_[0]
    assert len(names) == len(coef) == len(set(names))
    rows = FRAME.drop("y").head(50)
    plain = len(model._geometry.feature_names)
    labels = model._geometry.blocks
    for row, score in zip(rows.iter_rows(named=True), model.decision_function(rows), strict=True):
        total = model.intercept_[0]
        cells: dict[str, list[str]] = {}
        for block in labels:
            own = row[block.column.name]
            if block.kind == "levels":
                cells[block.column.name] = [f"{block.column.name}_{own}"]
                total += coef[names.index(f"{block.column.name}_{own}")]
            else:
                place = (own - block.column.low) / (block.column.high - block.column.low)
                exact = np.interp(np.arange(8), [place * 7 - 1, place * 7, place * 7 + 1], [0, 1, 0], left=0, right=0)
                total += float(exact @ coef[[names.index(label) for label in block.labels]])
                cells[block.column.name] = [name for name in spans(names, block.column.name) if is_in(name, own)]
        for name, weight in zip(names[plain:], coef[plain:], strict=True):
            first, _, second = name.partition(" x ")
            if not second:  # a number by itself
                total += weight * is_in(first, row[first.split("_")[0]])
                continue
            total += weight * any(first in own for own in cells.values()) * any(second in own for own in cells.values())
        assert score == pytest.approx(total, abs=1e-9)


def spans(names: list[str], column: str) -> set[str]:
    """The cells of a number that names of pairs speak of."""
    return {part for name in names if " x " in name for part in name.split(" x ") if part.startswith(f"{column}_[")}


def is_in(name: str, value: float) -> bool:
    low, high = name.split("_", 1)[1].strip("[])").split(", ")
    return float(low) <= value < float(high) or (name.endswith("]") and value == float(high))


def test_names_of_cells_tell_where_a_wide_number_is() -> None:
    column = pf.Numeric("gain", 0, 100_000)
    schema = pf.Schema([column, pf.Category("u", ["a", "b", "c"])], CROSSED.target)
    interactions = Interactions(pf.ObjectivePerturbation().geometry(schema, ERMProblem(LOGISTIC), "splines"))
    names = interactions.names((0, 1))[::3]
    values = np.random.default_rng(0).uniform(0, 100_000, 2000) ** np.random.default_rng(1).uniform(0, 1, 2000)
    found = interactions.numbers((0, 1), [values, np.zeros(2000, dtype=np.int32)]) // 3
    assert len(set(found.tolist())) == 8
    for value, cell in zip(values, found, strict=True):
        low, high = (float(end) for end in names[cell].split(" x ")[0].split("_", 1)[1].strip("[])").split(", "))
        assert low * (1 - 1e-5) <= value <= high * (1 + 1e-5)


def test_fine_steps_of_numbers_tell_where_a_value_is_and_are_compared_with_alone() -> None:
    schema = pf.Schema(
        [pf.Numeric("gain", 0, 100_000), pf.Numeric("x", -1, 1, fill=0.25), pf.Category("u", ["a", "b"])],
        CROSSED.target,
    )
    interactions = Interactions(pf.ObjectivePerturbation().geometry(schema, ERMProblem(LOGISTIC), "splines"))
    assert interactions.alone() == [(0, 0), (1, 1)]
    rng = np.random.default_rng(0)
    batch = [10 ** rng.uniform(-1, 5.2, 4000), rng.uniform(-1.5, 1.5, 4000), np.zeros(4000, dtype=np.int32)]
    for pair, low, high in (((0, 0), 0.0, 1e5), ((1, 1), -1.0, 1.0)):
        names, found = interactions.names(pair), interactions.numbers(pair, batch)
        assert len(names) == len(set(names)) == interactions.n_cells(pair) == 500
        for value, cell in zip(np.clip(batch[pair[0]], low, high), found, strict=True):
            least, most = (float(end) for end in names[cell].split("_", 1)[1].strip("[])").split(", "))
            assert least - 1e-4 * abs(least) - 1e-5 <= value <= most + 1e-4 * abs(most) + 1e-5
        assert len(set(found.tolist())) > 300
    absent = [batch[0][:1], np.array([np.nan]), batch[2][:1]]
    given = [batch[0][:1], np.array([0.25]), batch[2][:1]]
    assert interactions.numbers((1, 1), absent) == interactions.numbers((1, 1), given)


def test_every_engine_gives_the_same_scores(tmp_path) -> None:
    model = fitted(interactions=12)
    path = tmp_path / "rows.parquet"
    FRAME.write_parquet(path)
    wanted = model.decision_function(FRAME.drop("y"))
    for other in (FRAME.drop("y").to_pandas(), FRAME.drop("y").to_arrow(), str(path)):
        np.testing.assert_array_equal(model.decision_function(other), wanted)
    shuffled = FRAME.drop("y").select(["z", "w", "u", "x", "v"])
    np.testing.assert_array_equal(model.decision_function(shuffled), wanted)
    assert np.allclose(model.predict_proba(FRAME.drop("y")).sum(axis=1), 1)


def test_tables_survive_saving_and_loading(tmp_path) -> None:
    model = fitted(interactions=12)
    model.save(tmp_path / "model.json")
    again = pf.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.decision_function(FRAME.drop("y")), model.decision_function(FRAME.drop("y")))
    assert list(again.get_feature_names_out()) == list(model.get_feature_names_out())
    assert again.interactions == 12
    assert clone(again).interactions == 12
    plain = fitted(interactions=0)
    plain.save(tmp_path / "plain.json")
    assert not has_tables(pf.load_model(tmp_path / "plain.json"))


@pytest.mark.parametrize(
    "changed",
    [
        {"pairs": [[0, 0]]},
        {"pairs": [[9, 9]]},
        {"pairs": [[0]]},
        {"pairs": [[3, 3]]},
        {"pairs": [[1, 0]]},
        {"pairs": [[0.0, 2.0]]},
        {"cells": [4]},
        {"pairs": [[0, 2], [0, 2]], "cells": [9, 9]},
        {"cells": None},
    ],
)
def test_a_file_whose_tables_do_not_fit_is_refused(tmp_path, changed: dict) -> None:
    model = fitted(interactions=1)
    assert model._pairs == ((0, 2),)
    model.save(tmp_path / "model.json")

    def change(document: dict) -> None:
        document["facts"] = {key: value for key, value in (document["facts"] | changed).items() if value is not None}

    rewrite(tmp_path / "model.json", change)
    with pytest.raises(pf.ModelFileError):
        pf.load_model(tmp_path / "model.json")


def test_very_close_bounds_have_fine_steps_with_names_of_their_own() -> None:
    narrow = pf.Schema([pf.Numeric("q", 1, 1 + 1e-14), pf.Category("u", ["a", "b"])], CROSSED.target)
    names = Interactions(pf.ObjectivePerturbation().geometry(narrow, ERMProblem(LOGISTIC), "splines")).names((0, 0))
    assert len(set(names)) == 500


def test_a_hundred_numbers_have_pairs_and_no_table_of_their_own() -> None:
    box = pf.Schema([pf.Numeric(f"x{i}", 0, 1) for i in range(100)], CROSSED.target)
    mechanism = pf.ObjectivePerturbation(interactions="auto")
    geometry = mechanism.geometry(box, ERMProblem(LOGISTIC), "splines")
    assert (
        mechanism._n_interactions(PublicFacts(geometry, PrivacyParameters(Budget(4.0)), 10**6), ERMProblem(LOGISTIC))
        == 2
    )
    assert len(menu_for(geometry, ERMProblem(LOGISTIC))) == 4950


def test_a_second_fit_without_tables_forgets_them() -> None:
    model = fitted(interactions=2)
    assert has_tables(model)
    assert not has_tables(model.set_params(interactions=0).fit(FRAME))


@pytest.mark.parametrize("mechanism", ["functional", "genetic", "output", "sample-and-aggregate"])
def test_so_does_a_fit_by_another_mechanism(mechanism: str) -> None:
    model = fitted(interactions=2)
    model.set_params(interactions="auto", mechanism=mechanism).fit(FRAME)
    assert len(model.get_feature_names_out()) == model.coef_.shape[1]
    assert model.decision_function(FRAME.drop("y")).shape == (len(FRAME),)


def test_auto_leaves_wide_tables_as_they_were() -> None:
    rng = np.random.default_rng(0)
    wide = pf.Schema([pf.Category("code", list(range(40_000))), *CROSSED.features[:2]], CROSSED.target)
    mechanism = pf.ObjectivePerturbation(interactions="auto")
    geometry = mechanism.geometry(wide, ERMProblem(LOGISTIC), "splines")
    assert (
        mechanism._n_interactions(PublicFacts(geometry, PrivacyParameters(Budget(10.0)), 10**6), ERMProblem(LOGISTIC))
        == 0
    )
    many = pf.Schema([pf.Category(f"c{i}", [0, 1]) for i in range(102)], CROSSED.target)
    codes = pl.DataFrame({**{f"c{i}": rng.integers(2, size=len(FRAME)) for i in range(102)}, "y": FRAME["y"]})
    assert not has_tables(pf.LogisticRegression(10.0, schema=many, random_state=0).fit(codes))
    with pytest.raises(pf.PrivacyError, match="5000 to choose from"):
        pf.LogisticRegression(10.0, schema=many, interactions=1, random_state=0).fit(codes)


def test_auto_leaves_alone_what_was_named() -> None:
    assert has_tables(fitted())
    assert not has_tables(fitted(epsilon=1.0))
    assert not has_tables(fitted(mechanism="objective"))
    assert not has_tables(fitted(mechanism=pf.ObjectivePerturbation()))
    assert not has_tables(fitted(mechanism="output"))
    assert not has_tables(fitted(adjacency="add-remove"))
    assert not has_tables(fitted(kernel="rbf", n_components=20))
    assert has_tables(fitted(mechanism="objective", interactions=1))
    assert has_tables(fitted(adjacency="add-remove", expected_rows=3000))
    assert has_tables(fitted(adjacency="add-remove", interactions=1))
    assert has_tables(fitted(delta=1e-6))


def test_without_tables_a_fit_is_what_it_was() -> None:
    np.testing.assert_array_equal(fitted(interactions=0).coef_, fitted(mechanism="objective").coef_)
    np.testing.assert_array_equal(fitted(epsilon=1.0).coef_, fitted(epsilon=1.0, mechanism="objective").coef_)


def test_numbers_in_bins_have_tables_and_slopes_none() -> None:
    assert has_tables(fitted(numeric="bins", interactions=4))
    model = fitted(numeric="slope", interactions=3)  # three categories make three pairs
    assert all(name.count("_") == 2 for name in model.get_feature_names_out() if " x " in name)
    with pytest.raises(pf.PrivacyError, match="3 pairs of columns"):
        fitted(numeric="slope", interactions=4)
    straight = pf.Schema([pf.Numeric("x", 0, 1), pf.Numeric("z", -1, 1)], CROSSED.target)
    assert not has_tables(
        pf.LogisticRegression(10.0, schema=straight, numeric="slope", random_state=0).fit(FRAME.drop("u", "v", "w"))
    )


@pytest.mark.parametrize("interactions", [-1, 21, 1.5, "two", None, True])
def test_numbers_that_mean_nothing_are_refused(interactions: object) -> None:
    with pytest.raises(pf.PrivacyError, match="how many pairs of columns"):
        fitted(interactions=interactions)


@pytest.mark.parametrize(
    "settings",
    [
        {"mechanism": "output"},
        {"mechanism": "functional"},
        {"mechanism": "genetic"},
        {"kernel": "rbf", "n_components": 20},
    ],
)
def test_mechanisms_and_kernels_without_tables_refuse_a_number(settings: dict) -> None:
    with pytest.raises(pf.PrivacyError, match="interactions=1"):
        fitted(interactions=1, **settings)


def test_more_classes_have_none_and_refuse_a_number() -> None:
    three = CROSSED.with_target(pf.Category("y", [0, 1, 2]))
    frame = FRAME.with_columns(y=pl.Series(np.arange(len(FRAME)) % 3))
    assert not has_tables(pf.LogisticRegression(10.0, schema=three, random_state=0).fit(frame))
    with pytest.raises(pf.PrivacyError, match="two classes"):
        pf.LogisticRegression(10.0, schema=three, interactions=1, random_state=0).fit(frame)


def test_a_refused_number_charges_nothing() -> None:
    ledger = pf.Ledger(epsilon=20.0)
    with pytest.raises(pf.PrivacyError):
        fitted(numeric="slope", interactions=9, ledger=ledger, random_state=None)
    assert ledger.spent == 0


def test_noise_that_cannot_be_drawn_is_refused_before_the_charge() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    for epsilon in np.geomspace(1e-14, 1e-11, 40):
        try:
            fitted(epsilon=float(epsilon), interactions=1, ledger=ledger, random_state=None)
        except pf.PrivacyError:
            assert ledger.spent == 0
        else:
            break
    assert ledger.spent == pytest.approx(float(epsilon))


def test_mechanisms_derived_from_a_perturbed_objective_stay_what_they_are() -> None:
    class Own(pf.ObjectivePerturbation):
        takes_interactions = True

    class Without(pf.ObjectivePerturbation):
        pass

    assert not has_tables(fitted(mechanism=Own()))
    model = fitted(mechanism=Own(), interactions=1)
    assert has_tables(model)
    assert isinstance(model._chosen_mechanism(), Own)
    with pytest.raises(pf.PrivacyError, match="interactions=1"):
        fitted(mechanism=Without(), interactions=1)
    assert has_tables(fitted(mechanism=pf.ObjectivePerturbation(steepest=1e-6), interactions=1))


def test_the_report_tells_what_was_chosen() -> None:
    report = fitted(interactions=1).report_
    assert "u x w" in str(report)
    assert "1 table of columns chosen privately" in report.mechanism
    assert report.epsilon == 10.0
    assert fitted(interactions=1)._chosen_mechanism() == pf.ObjectivePerturbation(interactions=1)
