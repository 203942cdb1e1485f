"""The generated census: reproducible, shaped like people, with an income that depends on them, and bounds that are not
theirs.
"""

import time

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import privfit as pf
from privfit.datasets.census import HIGH_INCOME_FROM, census_schema, generated_census, with_high_income

THIRTEEN = [
    "age",
    "gender",
    "marital",
    "education",
    "disability",
    "nativity",
    "hours",
    "residence",
    "dwelling",
    "family",
    "children",
    "cars",
    "income",
]


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return generated_census(20_000)


@pytest.fixture(scope="module")
def columns(people: pl.DataFrame) -> np.ndarray:
    categories = [column.name for column in census_schema().features if isinstance(column, pf.Category)]
    return StandardScaler().fit_transform(people.drop("income").to_dummies(categories, drop_first=True).to_numpy())


def test_has_the_thirteen_attributes_of_the_paper(people: pl.DataFrame) -> None:
    assert people.columns == THIRTEEN
    assert people.height == 20_000
    assert people.null_count().sum_horizontal().item() == 0


def test_same_seed_same_people_other_seed_other_people() -> None:
    assert generated_census(500, seed=3).equals(generated_census(500, seed=3))
    assert not generated_census(500, seed=3).equals(generated_census(500, seed=4))


def test_fifty_thousand_people_take_no_time() -> None:
    start = time.perf_counter()
    assert generated_census().height == 50_000
    assert time.perf_counter() - start < 5.0


@pytest.mark.parametrize("rows", [0, -3])
def test_an_empty_census_is_refused(rows: int) -> None:
    with pytest.raises(ValueError, match="at least one person"):
        generated_census(rows)


def test_one_person_is_a_census() -> None:
    assert generated_census(1).height == 1


@pytest.mark.parametrize(
    "condition",
    ["education <= age - 5", "residence <= age", "children < family", "children = 0 OR age >= 18", "income >= 0"],
)
def test_nobody_is_impossible(people: pl.DataFrame, condition: str) -> None:
    assert people.filter(~pl.sql_expr(condition)).height == 0


def test_a_spouse_belongs_to_the_family(people: pl.DataFrame) -> None:
    married = people.filter(pl.col("marital") == "married", pl.col("family") < 10)
    assert (married["family"] >= married["children"] + 2).all()


def test_attributes_hang_together(people: pl.DataFrame) -> None:
    def mean(of: str, where: pl.Expr) -> float:
        return float(people.filter(where)[of].mean())  # type: ignore[arg-type]

    assert mean("age", pl.col("dwelling") == "owned") > mean("age", pl.col("dwelling") == "rented") + 3
    assert mean("children", pl.col("marital") == "married") > 2 * mean("children", pl.col("marital") == "single")
    assert mean("hours", pl.col("disability") == "yes") < mean("hours", pl.col("disability") == "no") - 5
    assert mean("cars", pl.col("income") > 50_000) > mean("cars", pl.col("income") < 15_000) + 0.3
    assert mean("education", pl.col("age") > 70) < mean("education", pl.col("age").is_between(25, 40)) - 1


def test_income_depends_on_the_others_about_half(people: pl.DataFrame, columns: np.ndarray) -> None:
    income = people["income"].to_numpy()
    fitted = LinearRegression().fit(columns[:16_000], income[:16_000])
    assert 0.4 < fitted.score(columns[16_000:], income[16_000:]) < 0.6


def test_income_is_not_a_straight_line(people: pl.DataFrame, columns: np.ndarray) -> None:
    income = people["income"].to_numpy()
    bent = PolynomialFeatures(2).fit_transform(columns)
    straight = LinearRegression().fit(columns[:16_000], income[:16_000]).score(columns[16_000:], income[16_000:])
    curved = LinearRegression().fit(bent[:16_000], income[:16_000]).score(bent[16_000:], income[16_000:])
    assert curved > straight + 0.03


@pytest.mark.parametrize("target", ["income", "high_income"])
def test_schema_covers_the_people_but_is_not_read_off_them(people: pl.DataFrame, target: str) -> None:
    table = people if target == "income" else with_high_income(people)
    schema = census_schema(target)  # type: ignore[arg-type]
    assert schema.target is not None
    assert [column.name for column in schema.columns] == table.columns
    for column in schema.columns:
        values = table[column.name]
        if isinstance(column, pf.Category):
            assert set(values.unique()) == set(column.levels)
        else:
            assert values.is_between(column.low, column.high).mean() > 0.99  # type: ignore[operator]
    loose = [
        column.name
        for column in schema.features
        if isinstance(column, pf.Numeric) and column.high != table[column.name].max()
    ]
    assert len(loose) >= 2


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ValueError, match="high_income"):
        census_schema("wealth")  # type: ignore[arg-type]


def test_high_income_is_income_above_the_public_threshold(people: pl.DataFrame, columns: np.ndarray) -> None:
    high = with_high_income(people)
    assert "income" not in high.columns
    assert ((people["income"] > HIGH_INCOME_FROM) == (high["high_income"] == "yes")).all()
    share = (high["high_income"] == "yes").mean()
    assert 0.25 < share < 0.5  # type: ignore[operator]
    classes = high["high_income"].to_numpy()
    fitted = LogisticRegression().fit(columns[:16_000], classes[:16_000])
    assert fitted.score(columns[16_000:], classes[16_000:]) > 1 - share + 0.1  # type: ignore[operator]


def test_a_private_model_learns_from_it(people: pl.DataFrame) -> None:
    model = pf.LinearRegression(epsilon=2.0, schema=census_schema(), random_state=0).fit(people.head(16_000))
    assert model.score(people.tail(4_000).drop("income"), people.tail(4_000)["income"].to_numpy()) > 0.3
