"""Tables come from a folder, else from the web with their bytes checked, else generated and said to be; all of them fit
their public schemas.
"""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.schema import Category, Numeric
from privfit_papers.bench import baskets, data, paper_census, stand_ins
from privfit_papers.bench.sources import Loaded, Source
from privfit_papers.bench.weights import adult_split

TABLES = ["adult", "bank", "brazil", "census_1980", "cps_wages", "lifesci", "house", "adult_baskets"]
GENERATED = {
    "adult": (48_842, 14),
    "bank": (45_211, 16),
    "brazil": (38_000, 52),
    "census_1980": (40_000, 6),
    "cps_wages": (40_000, 5),
    "lifesci": (26_733, 10),
    "house": (33_925, 3),
    "adult_baskets": (32_561, 11),
}
REAL = {**GENERATED, "census_1980": (329_509, 6), "cps_wages": (278_660, 5)}


@pytest.fixture
def offline(tmp_path) -> Source:
    return Source(folder=tmp_path, download=False, cache=tmp_path / "cache")


def real(table: str) -> Loaded:
    """A table of the data folder."""
    found = getattr(Source(download=False), table)()
    if found.origin != "folder":
        pytest.skip(f"no data folder with the files of {table} is here; name one with {data.FOLDER_VARIABLE}")
    return found


def check_fits(loaded: Loaded, share_outside: float = 0.0) -> None:
    """Every column is there, levels are all known, and numbers lie between the bounds."""
    for column in loaded.schema.columns:
        values = loaded.frame[column.name]
        assert values.null_count() == 0
        if isinstance(column, Category):
            assert set(values.unique()) <= set(column.levels), column.name
        else:
            assert isinstance(column, Numeric)
            outside = ((values < column.low) | (values > column.high)).mean()
            assert outside <= share_outside, column.name


# -- generated -------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_without_files_a_table_is_generated_and_says_so(offline, table: str) -> None:
    loaded = getattr(offline, table)()
    assert loaded.origin == "generated"
    assert loaded.notice.startswith("Generated in place of ")
    assert "made-up rows" in loaded.notice
    assert (loaded.frame.height, len(loaded.schema.features)) == GENERATED[table]
    check_fits(loaded, share_outside=0.02)
    assert getattr(offline, table)().frame.equals(loaded.frame)


@pytest.mark.parametrize(("table", "share"), [("adult", 0.24), ("bank", 0.12), ("brazil", 0.5)])
def test_generated_classes_have_their_shares_and_can_be_learned(offline, table: str, share: float) -> None:
    loaded = getattr(offline, table)()
    target = loaded.schema.target
    second = loaded.frame[target.name] == target.levels[1]
    assert second.mean() == pytest.approx(share, abs=0.001)
    model = pf.LogisticRegression(10.0, schema=loaded.schema, random_state=0).fit(loaded.frame)
    wrong = np.mean(model.predict(loaded.frame) != loaded.frame[target.name].to_numpy())
    assert wrong < 0.8 * share


@pytest.mark.parametrize("table", ["census_1980", "cps_wages"])
def test_generated_incomes_can_be_learned(offline, table: str) -> None:
    loaded = getattr(offline, table)()
    model = pf.LinearRegression(10.0, schema=loaded.schema, random_state=0).fit(loaded.frame)
    goal = loaded.frame[loaded.schema.target.name].to_numpy()
    assert np.mean((model.predict(loaded.frame) - goal) ** 2) < 0.95 * goal.var()


def test_generated_points_are_clustered(offline) -> None:
    from sklearn.cluster import KMeans

    for loaded, k in ((offline.lifesci(), 5), (offline.house(), 15)):
        points = loaded.frame.to_numpy()
        assert (
            -KMeans(k, n_init=3, random_state=0).fit(points).score(points)
            < 0.25 * len(points) * points.var(axis=0).sum()
        )


def test_the_highest_wage_is_a_setting(offline) -> None:
    assert offline.cps_wages(1_000_000).schema.target.high == 1_000_000


def test_generated_baskets_pose_the_problem_of_the_paper(offline) -> None:
    split = adult_split(offline.adult_baskets())
    assert "sex" not in split.private.columns
    assert split.truth > split.unweighted + 0.03


# -- the paper's census ----------------------------------------------------------------------------


@pytest.mark.parametrize("d", [5, 8, 11, 14])
@pytest.mark.parametrize("target", ["income", "high_income"])
def test_the_generated_census_has_the_papers_attributes(d: int, target: str) -> None:
    loaded = Source().generated_census(500, d=d, target=target)
    assert (
        loaded.frame.columns
        == paper_census.paper_columns(d, target)
        == [column.name for column in loaded.schema.columns]
    )
    assert loaded.frame.shape == (500, d)
    assert loaded.origin == "generated"
    check_fits(loaded, share_outside=0.02)


def test_sets_of_attributes_are_those_of_the_paper_and_nested() -> None:
    assert paper_census.paper_columns(5) == ["age", "gender", "education", "family", "income"]
    sets = [set(paper_census.paper_columns(d)) for d in (5, 8, 11, 14)]
    assert sets[0] < sets[1] < sets[2] < sets[3]
    assert sets[1] - sets[0] == {"nativity", "dwelling", "cars"}
    assert sets[2] - sets[1] == {"is_single", "is_married", "children"}
    with pytest.raises(ValueError, match="no set of 6"):
        paper_census.paper_columns(6)


def test_marital_status_becomes_two_attributes() -> None:
    frame = Source().generated_census(2_000).frame
    both = frame.filter((pl.col("is_single") == "yes") & (pl.col("is_married") == "yes"))
    neither = frame.filter((pl.col("is_single") == "no") & (pl.col("is_married") == "no"))
    assert both.height == 0
    assert 0 < neither.height < 1_000


# -- folders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_a_folder_is_read_first(table: str) -> None:
    loaded = real(table)
    assert (loaded.frame.height, len(loaded.schema.features)) == REAL[table]
    assert f"{loaded.frame.height:,}" in loaded.notice
    assert "enerated" not in loaded.notice
    check_fits(loaded, share_outside=0.02)


def test_stand_ins_have_the_schemas_of_the_real_tables(offline) -> None:
    for table in ("adult", "bank", "census_1980", "cps_wages", "house", "adult_baskets"):
        assert getattr(offline, table)().schema.to_toml() == real(table).schema.to_toml()


def test_stand_ins_in_folders_name_what_they_stand_in_for() -> None:
    assert "in place of the papers' IPUMS extracts" in real("census_1980").notice
    assert "in place of the papers' IPUMS extracts" in real("cps_wages").notice
    assert "in place of the PrivGene paper's Image" in real("house").notice


def test_colours_have_the_bounds_of_a_byte() -> None:
    assert [(column.low, column.high) for column in real("house").schema.features] == [(0, 255)] * 3


def test_a_source_goes_to_other_processes(tmp_path) -> None:
    source = Source(folder=tmp_path, download=False, cache=tmp_path / "cache")
    assert pickle.loads(pickle.dumps(source)) == source


# -- baskets ---------------------------------------------------------------------------------------


def test_cuts_give_the_same_rows_as_the_package() -> None:
    frame, schema = baskets.derived_baskets(real("adult").frame)
    package = real("adult_baskets")
    assert frame.equals(package.frame)
    assert schema.to_toml() == package.schema.to_toml()


def test_an_edge_belongs_to_the_level_below_it() -> None:
    people, _ = stand_ins.adult(8)
    ages, gains = [17.0, 25.0, 26.0, 45.0, 46.0, 65.0, 66.0, 90.0], [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    people = people.with_columns(
        pl.Series("age", ages), pl.Series("capital-gain", gains), pl.Series("workclass", ["?"] * 8)
    )
    frame, _ = baskets.derived_baskets(people)
    assert frame["age"].to_list() == ["Young", "Young", "Middle-aged", "Middle-aged", "Senior", "Senior", "Old", "Old"]
    assert frame["capital-gain"].to_list() == ["None"] * 3 + ["Low"] * 3 + ["High"] * 2
    assert frame["workclass"].to_list() == ["missing"] * 8


def test_a_split_of_loaded_baskets_is_that_of_the_folder() -> None:
    loaded = real("adult_baskets")
    one, two = adult_split(loaded, seed=3), adult_split(data.data_folder(), seed=3)
    assert one.private.equals(two.private)
    assert one.public.equals(two.public)
