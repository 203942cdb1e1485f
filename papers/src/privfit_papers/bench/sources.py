"""Every table of the experiments, wherever it can be had: from a data folder, else from the web, else generated and
said to be.

A `Source` says where to look, and is small enough to send to other processes. What it loads comes with its public
schema, and with a notice for a figure's caption: which rows these are, and what they stand in for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import polars as pl

from privfit.datasets.census import DEFAULT_ROWS, DEFAULT_SEED
from privfit.schema import Schema
from privfit_papers.bench import baskets, classes, clusters, cps, data, download, stand_ins
from privfit_papers.bench.download import UCI, Archive, NoDownload
from privfit_papers.bench.paper_census import Target, paper_census

Origin = Literal["folder", "download", "generated"]
Table = tuple[pl.DataFrame, Schema]


@dataclass(frozen=True)
class Loaded:
    """A table, what is public about it, where it came from, and a sentence that says so."""

    frame: pl.DataFrame
    schema: Schema
    name: str
    origin: Origin
    notice: str


@dataclass(frozen=True)
class _Known:
    """A table that a source knows: what it is and what its rows are, how to read it from a folder, what to make up in
    its place, where else to get it.

    `differs` says what the real table itself stands in for.
    """

    name: str
    real: str
    rows: str
    read: Callable[[Path], Table]
    made_up: Callable[[], Table]
    differs: str = ""
    archive: Archive | None = None


ADULT = _Known("Adult", "UCI Adult", "people", classes.adult, stand_ins.adult, archive=download.ADULT)
BANK = _Known("Bank", "UCI Bank marketing", "clients", classes.bank, stand_ins.bank, archive=download.BANK)
BRAZIL = _Known(
    "Brazil",
    "the IPUMS Brazil extract of the PrivGene paper's size",
    "people",
    classes.brazil,
    stand_ins.brazil,
    "whose columns have no names and whose bounds are read off the file",
)
US_DIFFERS = (
    "in place of the papers' IPUMS extracts of the US census (370,000, 316,276 and 40,000 rows), which may not be "
    "redistributed"
)
US = _Known("US", "the 1980 US census, men born 1930-39", "rows", data.census_1980, stand_ins.men_of_1980, US_DIFFERS)


@dataclass(frozen=True)
class Source:
    """Where tables are looked for.

    Parameters
    ----------
    folder : a folder with the files; without one, that of PRIVFIT_DATA or a usual place beside the working directory.
    download : whether a file that no folder has may be fetched from the UCI repository. One that was fetched before is
        read in any case.
    cache : where fetched files are kept; without one, the folder of PRIVFIT_CACHE or the user's cache directory.
    host : the address of the UCI repository.
    """

    folder: Path | None = None
    download: bool = True
    cache: Path | None = None
    host: str = UCI

    def adult(self) -> Loaded:
        """UCI Adult; the target is whether income exceeds 50K."""
        return self._load(ADULT)

    def bank(self) -> Loaded:
        """UCI Bank marketing; the target is whether a client subscribed."""
        return self._load(BANK)

    def brazil(self) -> Loaded:
        """Brazilian census people, 52 columns; the target has two classes of about the same size."""
        return self._load(BRAZIL)

    def census_1980(self) -> Loaded:
        """Men born 1930-39 in the 1980 US census; the target is the logarithm of the weekly wage."""
        return self._load(US)

    def cps_wages(self, highest: float = cps.HIGHEST_WAGE) -> Loaded:
        """Heads of US tax units of 16 years or more; the target is their wages, cut at [0, highest] dollars a year."""
        read, made_up = partial(cps.cps_wages, highest=highest), partial(stand_ins.tax_units, highest)
        return self._load(
            _Known("CPS", "the US CPS tax units of 2012-14", "heads of 16 years or more", read, made_up, US_DIFFERS)
        )

    def lifesci(self) -> Loaded:
        """Lifesci, ten numbers a row, without its label."""
        return self._load(
            _Known("Lifesci", "Lifesci", "rows", _lifesci, stand_ins.lifesci, "with bounds read off the file")
        )

    def house(self) -> Loaded:
        """Colours of the House picture, three numbers of one byte each."""
        differs = "in place of the PrivGene paper's Image table of 34,112 colours"
        return self._load(
            _Known("House", "the distinct 8-bit colours of the House picture", "rows", _house, stand_ins.house, differs)
        )

    def adult_baskets(self) -> Loaded:
        """Adult as the R package arules cuts it.

        The table has sex, which is not in the schema: it decides who is private.
        """
        with suppress(data.NoData):
            frame, schema = baskets.arules_baskets(data.data_folder(self.folder))
            notice = f"Adult as the R package arules has it, {frame.height:,} people whose income is known."
            return Loaded(frame, schema, "Adult", "folder", notice)
        adult = self.adult()
        frame, schema = baskets.derived_baskets(adult.frame)
        notice = (
            f"{adult.notice} Columns are cut as in the R package arules, and the first {frame.height:,} rows are kept."
        )
        return replace(adult, frame=frame, schema=schema, notice=notice)

    def generated_census(
        self, rows: int = DEFAULT_ROWS, d: int = 14, target: Target = "income", seed: int = DEFAULT_SEED
    ) -> Loaded:
        """Generated people with the functional-mechanism paper's 14 attributes, or its sets of 5, 8 or 11, the target
        included.
        """
        frame, schema = paper_census(rows, d, target, seed)
        return Loaded(
            frame, schema, "census", "generated", f"A generated census, {rows:,} made-up people with {d} attributes."
        )

    def _load(self, known: _Known) -> Loaded:
        with suppress(data.NoData):
            frame, schema = known.read(data.data_folder(self.folder))
            return Loaded(frame, schema, known.name, "folder", _notice(known, frame))
        why = "no data folder has it"
        if known.archive is not None:
            try:
                frame, schema = known.read(self._fetched(known.archive))
                return Loaded(
                    frame, schema, known.name, "download", _notice(known, frame, f"from {urlsplit(self.host).hostname}")
                )
            except NoDownload as error:
                why += f", and it could not be downloaded: {str(error).rstrip('.')}"
        frame, schema = known.made_up()
        notice = (
            f"Generated in place of {known.real} ({why}): {frame.height:,} made-up rows, which say nothing about the "
            "real ones."
        )
        return Loaded(frame, schema, known.name, "generated", notice)

    def _fetched(self, archive: Archive) -> Path:
        cache = download.cache_folder(self.cache)
        if not self.download and not download.kept(archive, cache):
            raise NoDownload("downloads are off.")
        return download.fetched(archive, cache, self.host)


def _notice(known: _Known, frame: pl.DataFrame, *more: str) -> str:
    """What a table is, how many rows it has, and what it stands in for, as a sentence."""
    said = ", ".join([known.real, f"{frame.height:,} {known.rows}", *more, *filter(None, [known.differs])])
    return f"{said[0].upper()}{said[1:]}."


def _lifesci(folder: Path) -> Table:
    table = clusters.lifesci(folder)
    return stand_ins.named(table.rows, table.schema), table.schema


def _house(folder: Path) -> Table:
    schema = stand_ins.colour_schema()
    return stand_ins.named(clusters.house(folder).rows, schema), schema
