"""`privfit bench clusters`: every method with its spread, for people and for scripts, with or without real data and the
peer.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from privfit_papers.bench.clusters import (
    METHODS,
    NO_PRIVACY,
    PEER,
    Spread,
    generated_mixture,
    house,
    lifesci,
    mean_distance,
)
from privfit_papers.bench.data import NoData, data_folder
from privfit_papers.cli import clusters
from tests.cli.conftest import Run


def told(result: Any) -> list[dict]:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["clusters"]


def test_json_has_every_method_and_epsilon(run: Run, tmp_path) -> None:
    rows = told(run("bench", "clusters", "--quick", "--work", tmp_path, "-e", 0.5, "-e", 2, "--json"))
    assert {(row["method"], row["epsilon"]) for row in rows} == {
        *((name, epsilon) for name in METHODS for epsilon in (0.5, 2.0)),
        (NO_PRIVACY, None),
    }
    best = next(row["distance"] for row in rows if row["method"] == NO_PRIVACY)
    assert all(0.999 * best < row["distance"] < 4 for row in rows)
    assert (
        run("bench", "clusters", "--quick", "--work", tmp_path, "-e", 0.5, "-e", 2, "--json").stdout
        == json.dumps({"clusters": rows}, indent=2) + "\n"
    )


def test_people_get_a_table_and_missing_files_are_told_by_name(run: Run, tmp_path) -> None:
    result = run(
        "bench", "clusters", "--quick", "--work", tmp_path, "--data", tmp_path, "-t", "generated", "-t", "house"
    )
    assert result.exit_code == 0, result.stderr
    for said in ("Mean squared distance", "6 clusters", "2 runs", *METHODS, NO_PRIVACY):
        assert said in " ".join(result.stdout.split())
    assert result.stdout.count("±") == 2 * len(METHODS)
    assert "house is not measured" in result.stderr
    assert "house-8bit-colours.csv.gz" in result.stderr
    assert "diffprivlib is not installed" in result.stderr


def test_the_peer_is_measured_where_it_is_installed(run: Run, tmp_path, monkeypatch) -> None:
    (tmp_path / "peer").mkdir()
    (tmp_path / "peer" / "ready").touch()
    happened: list[Any] = []

    class StandIn:
        def __init__(self, python: Any) -> None:
            happened.append(python)

        def __enter__(self) -> StandIn:
            return self

        def __exit__(self, *error: object) -> None:
            happened.append("ended")

        def centres(self, points: Any, **parameters: Any) -> np.ndarray:
            assert np.abs(np.load(points)).max() <= 1
            return np.zeros((parameters["n_clusters"], 4))

    monkeypatch.setattr(clusters, "PeerClusters", StandIn)
    rows = told(run("bench", "clusters", "--quick", "--work", tmp_path, "--json"))
    assert happened == [tmp_path / "peer" / "bin" / "python", "ended"]
    mine = [row for row in rows if row["method"] == PEER]
    points = generated_mixture(clusters.FEW_ROWS).scaled
    assert [row["distance"] for row in mine] == pytest.approx([float((points**2).sum(axis=1).mean())] * 2)


@pytest.mark.parametrize(("option", "bad"), [("--runs", "0"), ("--table", "houses")])
def test_what_means_nothing_is_refused(run: Run, option: str, bad: str) -> None:
    result = run("bench", "clusters", option, bad)
    assert result.exit_code == 2
    assert option in result.stderr


@pytest.mark.parametrize(("load", "shape"), [(lifesci, (26_733, 10)), (house, (33_925, 3))])
def test_real_tables_are_whole_and_scaled_by_their_bounds(load, shape) -> None:
    try:
        found = load(data_folder())
    except NoData as missing:
        pytest.skip(str(missing))
    assert found.rows.shape == shape
    np.testing.assert_allclose(found.scaled.min(axis=0), -1)
    np.testing.assert_allclose(found.scaled.max(axis=0), 1)


def test_distances_and_spreads_are_what_they_say() -> None:
    assert mean_distance(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.5]])) == pytest.approx(
        (1 + 0.25) / 2
    )
    spread = Spread.of("t", 3, "m", 1.0, [1.0, 3.0])
    assert (spread.runs, spread.distance, spread.deviation) == (2, 2.0, 1.0)
