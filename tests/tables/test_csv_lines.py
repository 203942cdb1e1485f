"""A CSV file is read only in the form on which all readers agree, and then as Python's csv module reads it."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfit as pf
from privfit.tables import ABSENT, DataError, csv_lines, open_table, public_schema
from privfit.tables.csv_lines import count_records, separator_of
from tests.support.chains import assert_ours

STRAY, RAGGED = "quote inside a field", "another number of fields than its header"
ENDINGS = {".csv": ",", ".tsv": "\t", ".csv.gz": ";"}

texts = st.text(alphabet="a1. \"',;\t\n\ré", max_size=6)


def written(rows: list[list[str]], width: int, separator: str, line_end: str, quoting: int) -> bytes:
    """A table as Python's csv module writes it.

    Its names hold the separator, which is therefore found also if there is one column.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator, lineterminator=line_end, quoting=quoting)  # type: ignore[arg-type]
    writer.writerows([[f"c{separator}{place}" for place in range(width)], *rows])
    return buffer.getvalue().encode()


def read_by_csv(data: bytes, separator: str) -> list[list[str]]:
    """The rows below the header. A blank line is a list without fields."""
    lines = io.StringIO(data.decode("utf-8-sig"), newline="")
    return list(csv.reader(lines, delimiter=separator))[1:]


def read_by_us(path: Path, rows: list[list[str]]) -> list[list[str]]:
    """The rows that a fit would see, if every text among these rows were a level of every column."""
    levels = sorted({cell for row in rows for cell in row if cell} | {"x", "y"})
    table = open_table(path)
    columns = [pf.Category(f"column {place}", levels) for place in range(len(table.names or ()))]
    found = [column for batch in table.batches(columns, range(len(columns)), 3) for column in zip(*batch, strict=True)]
    return [["" if code == ABSENT else levels[code] for code in row] for row in found]


def at(folder: str, ending: str, data: bytes) -> Path:
    path = Path(folder) / f"t{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    return path


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(st.lists(texts, min_size=width, max_size=width), min_size=1, max_size=8)
    ),
    st.sampled_from([*ENDINGS]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.booleans(),
)
def test_what_the_csv_module_writes_is_read_as_it_was(rows, ending, quoting, mark, ended) -> None:
    line_end = (
        "\r\n" if any("\r" in cell for row in rows for cell in row) else "\n"
    )  # otherwise CR is not quoted by all versions
    data = mark + written(rows, len(rows[0]), ENDINGS[ending], line_end, quoting)
    with tempfile.TemporaryDirectory() as folder:
        path = at(folder, ending, data if ended else data.removesuffix(line_end.encode()))
        assert separator_of(path) == ENDINGS[ending]
        assert count_records(path, ENDINGS[ending], len(rows[0])) == len(rows)
        assert read_by_us(path, rows) == rows


@settings(max_examples=800, deadline=None)
@given(
    st.lists(
        st.sampled_from(['"', '"', ",", ",", "\n", "\n", "\r\n", "\r", "a", "1", '""', '","', '"\n"']), max_size=24
    ),
    st.integers(1, 3),
)
def test_whatever_is_accepted_is_read_as_the_csv_module_reads_it(parts, width) -> None:
    data = (",".join("abc"[:width]) + "\n" + "".join(parts)).encode()
    rows = read_by_csv(data, ",")
    with tempfile.TemporaryDirectory() as folder:
        path = at(folder, ".csv", data)
        try:
            found = read_by_us(path, rows)
        except DataError as error:
            assert_ours(error, "nothing")
        else:
            assert found == rows


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_one_field_too_many_too_few_or_a_blank_line_anywhere_is_refused(data) -> None:
    width = data.draw(st.integers(1, 3))
    rows = data.draw(st.lists(st.lists(texts, min_size=width, max_size=width), min_size=1, max_size=6))
    place = data.draw(st.integers(0, len(rows)))
    wrong = data.draw(st.sampled_from([[], ["1"] * (width + 1), ["1"] * (width - 1)]))
    with tempfile.TemporaryDirectory() as folder:
        path = at(folder, ".csv", written([*rows[:place], wrong, *rows[place:]], width, ",", "\r\n", csv.QUOTE_MINIMAL))
        with pytest.raises(DataError, match=RAGGED):
            count_records(path, ",", width)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(texts, min_size=2, max_size=2), min_size=1, max_size=6), st.data())
def test_one_quote_inside_a_plain_field_is_refused_wherever_it_stands(rows, draws) -> None:
    place = draws.draw(st.integers(0, len(rows)))
    stray = draws.draw(st.sampled_from(['5" pipe', '5"', 'a""b', '"a" b', '""a', ' "a"']))
    data = written([*rows[:place], ["0.5", "STRAY"], *rows[place:]], 2, ",", "\n", csv.QUOTE_ALL)
    with tempfile.TemporaryDirectory() as folder:
        path = at(folder, ".csv", data.replace(b'"STRAY"', stray.encode()))
        with pytest.raises(DataError, match=STRAY):
            count_records(path, ",", 2)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 34, 1000])
def test_nothing_is_lost_where_blocks_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Quoted fields with line ends, pairs of quotes and CR LF, cut into blocks of many sizes."""
    monkeypatch.setattr(csv_lines, "BLOCK", size)
    data = b"a,b\r\n" + b'2,"x""\r\n\r\n,"""\r\n1,2\r\n"","\n\n"\r\n' * 20
    assert count_records(at(str(tmp_path), ".csv", data), ",", 2) == 60 == len(read_by_csv(data, ","))
    for bad in (
        data + b'3,"',
        data + b"3\r\n",
        data + b'3,4"\r\n',
        data + b'3,"\r\n\n\n',
        data.replace(b'"\n\n"', b'"\n"\n', 1),
    ):
        with pytest.raises(DataError, match=f"{STRAY}|{RAGGED}"):
            count_records(at(str(tmp_path), ".csv", bad), ",", 2)


# -- fits ------------------------------------------------------------------------------------------

SCHEMA = pf.Schema([pf.Numeric("x", 0, 1, fill=0.5)], pf.Numeric("y", 0, 1, fill=0.5))
ROWS = 100_000


def piped(separator: str) -> bytes:
    """Two cells of a column that the schema does not list hold a quote, and all the rows stand between them."""
    rows = ([f"0.{i % 10}", f"0.{i % 7}", '5" pipe' if i in (3, ROWS - 1) else "pipe"] for i in range(ROWS))
    return "\n".join(separator.join(row) for row in [["x", "y", "item"], *rows]).encode() + b"\n"


@pytest.mark.parametrize("ending", ENDINGS)
def test_quotes_in_a_column_that_is_not_used_lose_no_rows(tmp_path: Path, ending: str) -> None:
    path = at(str(tmp_path), ending, piped(ENDINGS[ending]))
    ledger = pf.Ledger(tmp_path / "l.db", epsilon=1.0)
    with pytest.raises(DataError, match=rf"{STRAY}.*with every quote in it doubled.*Nothing was charged"):
        pf.LinearRegression(1.0, schema=SCHEMA, ledger=ledger).fit(path)
    assert ledger.entries() == []
    with pytest.raises(DataError, match=STRAY):
        public_schema(path)
    whole = at(str(tmp_path), ending, piped(ENDINGS[ending]).replace(b'5" pipe', b'"5"" pipe"'))
    model = pf.LinearRegression(1.0, schema=SCHEMA, ledger=ledger).fit(whole)
    assert len(model.predict(whole)) == ROWS
    with pytest.raises(DataError, match=STRAY) as caught:
        model.predict(at(str(tmp_path), ending, piped(ENDINGS[ending])))
    assert "charged" not in str(caught.value)


@pytest.mark.parametrize(
    "lines",
    ["b,0.9,0.3,0.4\n", "b,0.9\n", "\n", "\n\n\n", "b,0.9,0.3\n\nb,0.9,0.3\n", "\r\n", "b,0.9,0.3\rb,0.9,0.3\n", ","],
    ids=repr,
)
def test_a_line_that_is_no_row_is_refused_before_the_charge(tmp_path: Path, lines: str) -> None:
    path = at(str(tmp_path), ".csv", f"c,x,y\na,0.1,0.2\n{lines}".encode())
    ledger = pf.Ledger(tmp_path / "l.db", epsilon=1.0)
    with pytest.raises(DataError, match=rf"{RAGGED}, a blank line.*Nothing was charged"):
        pf.LinearRegression(1.0, schema=SCHEMA, ledger=ledger).fit(path)
    assert ledger.entries() == []


def test_a_blank_line_of_a_file_of_one_column_is_no_missing_value(tmp_path: Path) -> None:
    column = [pf.Numeric("x", 0, 1, fill=0.5)]
    (batch,) = open_table(at(str(tmp_path), ".csv", b'x\n0.5\n""\n')).batches(column, [0], 10)
    np.testing.assert_array_equal(batch[0], [0.5, np.nan])
    for data in (b"x\n0.5\n\n", b"x\n\n0.5\n", b"x\r\n0.5\r\n\r\n", b"\nx\n0.5\n"):
        with pytest.raises(DataError, match="a blank line"):
            list(open_table(at(str(tmp_path), ".csv", data)).batches(column, [0], 10))


def test_a_reader_that_finds_another_number_of_rows_is_not_believed(tmp_path: Path) -> None:
    opened = open_table(at(str(tmp_path), ".csv", b"x,y\n0.5,0.5\n0.5,0.5\n"))
    assert len(list(opened.batches(SCHEMA.columns, [0, 1], 10))) == 1
    opened.promised += 1  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="another number of rows than it has records"):
        list(opened.batches(SCHEMA.columns, [0, 1], 10))


def test_compression_that_is_unpacked_unasked_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"x": [0.5], "y": [0.5]}).write_csv(tmp_path / "plain.csv")
    for data in (zlib.compress((tmp_path / "plain.csv").read_bytes()), b"\x28\xb5\x2f\xfd rest"):
        with pytest.raises(DataError, match=r"compressed, and not by gzip.*Nothing was charged"):
            open_table(at(str(tmp_path), ".csv", data))
