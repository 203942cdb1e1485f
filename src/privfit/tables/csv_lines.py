"""The records of a CSV file, counted and checked byte by byte before a reader is trusted with them.

Readers disagree about files that are not well formed, and say nothing. To polars every quote opens or closes a quoted
field, to pandas and Python's csv module only one at the start of a field: two cells such as `5" pipe` make polars
take all rows between them for one cell. A line with too many fields is read without an error if the columns that it
lacks or has too many are not asked for, and a blank line is a row of missing values to one reader and nothing to
another. One row would decide what becomes of others.

So a file is read only if it has the form of RFC 4180, on which all readers agree:

- Bytes are those of UTF-8, or of another encoding that keeps ASCII: a separator, quote or line end never is part of
  another character. A byte order mark of UTF-8 may come first.
- The separator is a tab in a file called .tsv; elsewhere a semicolon if the first line has more of them than commas,
  else a comma.
- A record ends with LF or CR LF, the last one also with the file. CR alone stands only in quoted fields.
- A quoted field begins and ends with `"`, next to a separator, a line end or an end of the file. `""` in it stands
  for one quote, and separators and line ends in it are text. Quotes stand nowhere else.
- Every record has as many fields as the first one, the header, and none is blank.

What cannot be known: a cell that begins with a quote which nobody closes, and a later one that ends with one, are one
quoted field with line ends in it. All readers take it for that.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privfit.tables.errors import DataError

BLOCK = 1 << 18
"""Bytes that are looked at together: few enough to stay in the processor's cache, enough that Python's part of the work
does not count.
"""

GZIP = b"\x1f\x8b"
OTHER_COMPRESSIONS = (b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda")
"""How files compressed by zstd and zlib begin: polars unpacks them unasked, whatever they are called."""

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_END, RETURN, QUOTE = b"\n", b"\r", b'"'

Bytes = NDArray[np.uint8]


def separator_of(path: Path) -> str:
    """What stands between the fields of a file."""
    if path.name.lower().endswith(".tsv"):
        return "\t"
    with _unpacked(path) as file:
        first = file.readline()
    return ";" if first.count(b";") > first.count(b",") else ","


def count_records(path: Path, separator: str, fields: int) -> int:
    """How many rows follow the header of a file whose records have so many fields each, or an error if it has another
    form.

    Outside of quotes, separators and line ends follow each other in one order, over and over: `fields` - 1 separators,
    one line end.
    """
    mark = separator.encode()
    cycle = mark * (fields - 1) + LINE_END
    seen, inside = 0, False
    for block in _blocks(path):
        cells = np.frombuffer(block, np.uint8)
        places, inside = _outside_quotes(block, cells, mark, inside)
        _refuse_ragged(cells, places, cycle, seen)
        seen += len(places)
    if inside:
        raise stray_quotes()
    return seen // fields - 1


def _blocks(path: Path) -> Iterator[bytes]:
    """The file's bytes in blocks that end where lines do, quoted or not, so that no two bytes that belong together are
    apart.

    A line end is added to a last line that has none.
    """
    with _unpacked(path) as file:
        start = file.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
        while block := start + file.read(BLOCK) + file.readline():
            start = b""
            if block.endswith(RETURN):  # a line end added here would make it part of one
                raise ragged_lines()
            yield block if block.endswith(LINE_END) else block + LINE_END


def _unpacked(path: Path) -> gzip.GzipFile | BufferedReader:
    with path.open("rb") as file:
        first = file.read(4)
    if first.startswith(UTF_16):
        raise DataError(
            f"The file {path.name!r} is a text in UTF-16, as Excel and PowerShell write it. Write it again in UTF-8. "
            "Nothing was charged."
        )
    if first.startswith(OTHER_COMPRESSIONS):
        raise DataError(
            f"The file {path.name!r} is compressed, and not by gzip. Compress it with gzip, under a name that ends "
            "with .csv.gz, or write it "
            "plainly. Nothing was charged."
        )
    return gzip.open(path, "rb") if first.startswith(GZIP) else path.open("rb")


def _outside_quotes(block: bytes, cells: Bytes, separator: bytes, inside: bool) -> tuple[NDArray[np.intp], bool]:
    """Where separators and line ends stand that are no part of a quoted field (and CR alone, which must not), and
    whether the block
    ends inside such a field; `inside` says whether it begins there. Refuses quotes that stand where a field neither
    begins nor ends.
    """
    special = (cells == ord(separator)) | (cells == ord(LINE_END))
    if QUOTE in block:
        special |= cells == ord(QUOTE)
    bounds = special
    if RETURN in block:
        returns = cells == ord(RETURN)
        bounds = special | returns
        places = np.flatnonzero(returns)
        special[places[cells[places + 1] != ord(LINE_END)]] = True
    places = np.flatnonzero(special)
    if QUOTE not in block:
        return places[: 0 if inside else None], inside
    is_quote = cells[places] == ord(QUOTE)
    quotes = places[is_quote]
    _refuse_stray(bounds, quotes, inside)
    count = np.cumsum(is_quote, dtype=np.uint8)  # modulo 256, which is even
    return places[(count % 2 == inside) & ~is_quote], inside ^ (len(quotes) % 2 == 1)


def _refuse_stray(bounds: NDArray[np.bool_], quotes: NDArray[np.intp], inside: bool) -> None:
    """Refuse a quote that has no bound of a field at its outer side: separator, line end, or another quote, with which
    it makes a pair.

    Quotes open and close by turns. A block ends with a line end, so that no quote is its last byte; and what stands
    before its first byte is a line end too, as at place -1.
    """
    opening, closing = quotes[int(inside) :: 2], quotes[int(not inside) :: 2]
    if not (bounds[opening - 1].all() and bounds[closing + 1].all()):
        raise stray_quotes()


def _refuse_ragged(cells: Bytes, places: NDArray[np.intp], cycle: bytes, seen: int) -> None:
    """Refuse marks that do not go on in their order after `seen` of them.

    In a file of one column a blank line keeps the order.
    """
    done = seen % len(cycle)
    wanted = (cycle * (len(places) // len(cycle) + 2))[done : done + len(places)]
    if cells[places].tobytes() != wanted or (len(cycle) == 1 and _is_any_blank(cells, places)):
        raise ragged_lines()


def _is_any_blank(cells: Bytes, ends: NDArray[np.intp]) -> bool:
    """Whether a line that ends here has nothing before its end."""
    before = ends - 1
    before = np.where(cells[before] == ord(RETURN), before - 1, before)
    return bool(np.any(cells[before] == ord(LINE_END)))


def stray_quotes() -> DataError:
    """The error for quotes that readers understand differently."""
    return DataError(
        "The CSV file has a quote inside a field that is not quoted, or a quoted field that does not end, and readers "
        "disagree about where "
        'such a field ends. A field that holds a quote is written in quotes, with every quote in it doubled: "5"" '
        'pipe". Write the file so '
        "(the csv module, pandas and polars do), or read it yourself and give the frame. Nothing was charged."
    )


def ragged_lines() -> DataError:
    """The error for lines that are not a row of the table."""
    return DataError(
        "The CSV file has a line with another number of fields than its header, a blank line, or a carriage return "
        "that ends no line. Every line "
        "needs one field per column, quoted if it holds a separator or a line end. Mend or remove such lines, or read "
        "the file yourself and "
        "give the frame. Nothing was charged."
    )
