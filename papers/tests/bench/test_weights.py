"""The experiment of Ji and Elkan: its split, its measures, and, where the file is there, its order of methods."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from privfit.schema import Category
from privfit_papers.bench.data import NoData, data_folder
from privfit_papers.bench.weights import (
    FILE,
    METHODS,
    adult_split,
    direct_deviation,
    generated_split,
    svm,
    weighting_outcomes,
)


def adult():
    try:
        return adult_split(data_folder())
    except NoData:
        pytest.skip(f"{FILE} is not here")


def test_weights_bring_a_generated_public_table_to_the_private_share() -> None:
    split = generated_split()
    outcomes = {one.method: one for one in weighting_outcomes(split, epsilon=1.0, runs=5, svm_runs=1)}
    assert set(outcomes) == set(METHODS)
    off = abs(split.unweighted - split.truth)
    assert off > 0.05
    assert abs(outcomes["tilting"].median - split.truth) < 0.2 * off
    assert all(abs(one.median - split.truth) < off for one in outcomes.values())
    assert all(0 < one.svm_distance < 4 * one.svm_norm for one in outcomes.values())
    assert all(one.to_dict()["runs"] == 5 for one in outcomes.values())


def test_runs_repeat_and_bootstraps_differ() -> None:
    split = generated_split()
    one, two = (weighting_outcomes(split, methods=["tilting"], runs=3, svm_runs=0)[0] for _ in range(2))
    assert one.median == two.median
    assert one.deviation > 0
    assert not split.bootstrapped(0).equals(split.bootstrapped(1))
    assert split.bootstrapped(0).height == split.private.height


def test_an_svm_takes_weights_as_rows() -> None:
    """A row of weight two is two rows."""
    split = generated_split(400)
    twice = pl.concat([split.public, split.public[:50]])
    weights = np.ones(split.public.height)
    weights[:50] = 2
    np.testing.assert_allclose(
        svm(split.public, split.schema, weights, 500), svm(twice, split.schema, np.ones(twice.height), 500), atol=0.02
    )


def test_adult_is_split_as_the_paper_says() -> None:
    split = adult()
    assert split.private.height + split.public.height == 32_561
    assert split.private.height == pytest.approx(21_000, abs=400)
    assert split.truth == pytest.approx(0.3, abs=0.01)
    assert split.unweighted == pytest.approx(0.15, abs=0.01)
    assert "sex" not in split.private.columns
    assert (
        sum(
            level != "missing"
            for column in split.schema.features
            if isinstance(column, Category)
            for level in column.levels
        )
        == 72
    )
    assert direct_deviation(split) == pytest.approx(0.0007, abs=1e-4)


def test_tilting_is_nearer_and_steadier_than_the_paper_on_adult() -> None:
    split = adult()
    tilting, paper = weighting_outcomes(split, methods=["tilting", "paper"], runs=12, svm_runs=2)
    assert abs(tilting.median - split.truth) < 0.02
    assert tilting.deviation < 0.5 * paper.deviation
    assert max(tilting.svm_distance, paper.svm_distance) < 4.8
    assert paper.median - split.unweighted > 0.03


def test_a_folder_without_the_file_is_told_by_name(tmp_path) -> None:
    with pytest.raises(NoData, match=FILE):
        adult_split(tmp_path)
