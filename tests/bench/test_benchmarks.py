"""Quick forms of the benchmarks, and the accuracy bar on the real census when the file is there."""

from __future__ import annotations

import pytest

import privfit as pf
from privfit.bench import accuracy, data, speed
from privfit.bench.census import census_schema, generated_census
from privfit.report import accuracy_figure

OURS = {"privfit": pf.FunctionalMechanism()}


def real_census():
    try:
        return data.census_1980(data.data_folder())
    except data.NoData as missing:
        pytest.skip(str(missing))


def test_the_1980_census_bar_is_met() -> None:
    """At most 12% of the explained variance lost at epsilon 0.1 and 0.5% at 0.8; never worse than the mean. Seeded."""
    frame, schema = real_census()
    small, large = accuracy.lost_shares("census", frame, schema, OURS, (0.1, 0.8), splits=2, runs=4)
    assert small.mean <= 0.12
    assert large.mean <= 0.005
    assert max(small.worst, large.worst) < 1


def test_the_generated_census_is_learned_and_more_epsilon_helps() -> None:
    shares = list(accuracy.lost_shares("generated", generated_census(30_000), census_schema(), OURS, (0.2, 1.6), splits=1, runs=3))
    assert shares[0].worst < 1
    assert shares[1].mean < 0.3 * shares[0].mean
    assert shares[0].runs == 3


def test_the_speed_benchmark_measures_both_sides(tmp_path) -> None:
    memory = speed.in_memory(20_000, 1)
    assert memory.ours > 0
    assert memory.other > 0
    assert memory.to_dict()["ratio"] == memory.ratio
    wide = speed.wide(2000, 1)
    assert wide.ours > 0
    assert wide.other > 0
    parquet = speed.from_parquet(20_000, 1, tmp_path)
    assert parquet.peak_gigabytes is not None
    assert parquet.peak_gigabytes > 0.01
    assert [path.name for path in tmp_path.iterdir()] == ["speed-20000.parquet"]


def test_the_figure_is_drawn(tmp_path) -> None:
    shares = [share.to_dict() for share in accuracy.lost_shares("t", generated_census(3000), census_schema(), OURS, (0.4, 1.6), 1, 2)]
    path = tmp_path / "figure.png"
    accuracy_figure(shares, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 5000
