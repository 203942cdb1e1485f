"""Errors and intervals of a description of skewed incomes."""

from __future__ import annotations

import pytest

from privfit_papers.bench.description import SHAPES, asked, described


def test_the_median_and_the_90_percent_point_are_close() -> None:
    found = {one.figure: one for one in described("log-normal, 0.75", runs=5)}
    assert found["median"].median_error < 0.02
    assert found["90%"].median_error < 0.04


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_figures_reach_their_goals_and_intervals_hold_about_nine_times_out_of_ten(shape: str) -> None:
    for one in (*described(shape, runs=200), *asked(shape, 0.5, runs=200), *asked(shape, 0.9, runs=200)):
        assert one.covered is not None
        assert 0.8 <= one.covered <= 0.99, one
        if shape == "log-normal, 0.75" and one.figure != "mean":
            assert one.median_error < (0.01 if one.figure == "median" else 0.02), one
