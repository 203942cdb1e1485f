"""Writes the generated tables that are shipped with the library: `python tools/tables.py`. A test compares them."""

from __future__ import annotations

from pathlib import Path

from privfit.datasets.census import generated_census
from privfit.datasets.loading import CENSUS_FILE, CENSUS_ROWS, PATIENTS_FILE
from privfit.datasets.patients import generated_patients

FOLDER = Path(__file__).parents[1] / "src" / "privfit" / "datasets"

if __name__ == "__main__":
    generated_census(CENSUS_ROWS).write_parquet(FOLDER / CENSUS_FILE, compression="zstd", statistics=False)
    generated_patients().write_parquet(FOLDER / PATIENTS_FILE, compression="zstd", statistics=False)
