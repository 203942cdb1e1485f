"""The bench of engines: what is compared is the same table, and every line says what was measured."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import privfit as pf
from privfit.models import LinearRegression
from privfit_papers.bench import engine_tables as tables
from privfit_papers.bench.engines import ONE_PASS, SOURCES, growth, side_by_side, written
from privfit_papers.cli.engines import markdown

ROWS = 3_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("engines")


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.ending != "postgresql"])
def test_every_engine_has_the_same_rows(name, folder) -> None:
    source = SOURCES[name]
    place = written(source, folder, ROWS)
    schema = tables.schema_of("wide" if source.kind == "wide" else ONE_PASS)
    model = LinearRegression(schema=schema, random_state=0).fit(source.given(place))
    frame = pf.tables.open_table(written(SOURCES["Parquet"], folder, ROWS)) if source.kind == "people" else None
    if frame is not None:
        again = LinearRegression(schema=schema, random_state=0).fit(frame)
        assert (model.coef_ == again.coef_).all()
    source.read(place, [column.name for column in schema.columns])


def test_both_sides_answer_and_a_line_names_what_was_measured(folder) -> None:
    source = SOURCES["Parquet"]
    line = side_by_side(source, ONE_PASS, written(source, folder, ROWS), ROWS, 1)
    assert line.ratio == line.fit / line.read > 0
    assert 0.05 < line.peak_gigabytes < 1
    assert "| Parquet | linear | polars |" in markdown([line])


def test_growth_has_an_exponent_from_the_second_size_on(folder) -> None:
    first, second = growth("linear", (ROWS, 2 * ROWS), folder, 1)
    assert first.exponent is None
    assert second.exponent is not None


def test_row_groups_are_as_large_as_asked(tmp_path) -> None:
    tables.write_parquet(tmp_path / "a.parquet", 5_000, 2_000)
    footer = pq.ParquetFile(tmp_path / "a.parquet").metadata
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [2_000, 2_000, 1_000]
