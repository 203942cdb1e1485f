"""Real tables with classes for the benchmarks: UCI Adult and Bank marketing, the Brazil extract, each with its public
schema.

Bounds and levels come from the documentation of the data. The Brazil extract has none: its bounds are read off the
file, which is fine for a benchmark and never for a release.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from privfit.schema import Category, Column, Numeric, Schema
from privfit_papers.bench.data import NoData

ADULT_LEVELS = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters "
    "1st-4th 10th Doctorate 5th-6th Preschool",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical "
    "Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
    "Japan Greece South China Cuba Iran Honduras "
    "Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan "
    "Haiti Columbia Hungary Guatemala "
    "Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
}
ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
ADULT_NUMBERS: dict[str, tuple[float, float]] = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 5_000),
    "hours-per-week": (1, 99),
}
UNKNOWN = "?"


def adult(folder: Path) -> tuple[pl.DataFrame, Schema]:
    """UCI Adult, all 48,842 people; the target is whether income exceeds 50K."""
    parts = []
    for name, skipped in (("adult.data.gz", 0), ("adult.test.gz", 1)):
        part = pl.read_csv(
            _file(folder, name), has_header=False, new_columns=ADULT_COLUMNS, skip_rows=skipped, infer_schema=False
        )
        parts.append(part.with_columns(pl.all().str.strip_chars(" .")).filter(pl.col("income").is_not_null()))
    return pl.concat(parts).with_columns(pl.col(list(ADULT_NUMBERS)).cast(pl.Float64)), adult_schema()


def adult_schema() -> Schema:
    """What is public about Adult."""
    features: list[Column] = []
    for column in ADULT_COLUMNS[:-1]:
        if column in ADULT_NUMBERS:
            features.append(Numeric(column, *ADULT_NUMBERS[column]))
        else:
            missing = [UNKNOWN] if column in ("workclass", "occupation", "native-country") else []
            features.append(Category(column, [*ADULT_LEVELS[column].split(), *missing]))
    return Schema(features, target=Category("income", ["<=50K", ">50K"]))


def bank(folder: Path) -> tuple[pl.DataFrame, Schema]:
    """UCI Bank marketing, 45,211 clients; the target is whether a client subscribed."""
    return pl.read_csv(_file(folder, "bank-full.csv.gz"), separator=";"), bank_schema()


def bank_schema() -> Schema:
    """What is public about Bank marketing."""
    months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    jobs = [
        "admin.",
        "unknown",
        "unemployed",
        "management",
        "housemaid",
        "entrepreneur",
        "student",
        "blue-collar",
        "self-employed",
        "retired",
        "technician",
        "services",
    ]
    features: list[Column] = [
        Numeric("age", 18, 95),
        Category("job", jobs),
        Category("marital", ["married", "divorced", "single"]),
        Category("education", ["unknown", "secondary", "primary", "tertiary"]),
        Category("default", ["no", "yes"]),
        Numeric("balance", -10_000, 100_000),
        Category("housing", ["no", "yes"]),
        Category("loan", ["no", "yes"]),
        Category("contact", ["unknown", "telephone", "cellular"]),
        Numeric("day", 1, 31),
        Category("month", months),
        Numeric("duration", 0, 5_000),
        Numeric("campaign", 1, 60),
        Numeric("pdays", -1, 900),
        Numeric("previous", 0, 60),
        Category("poutcome", ["unknown", "other", "failure", "success"]),
    ]
    return Schema(features, target=Category("y", ["no", "yes"]))


def brazil(folder: Path) -> tuple[pl.DataFrame, Schema]:
    """The Brazil extract of PrivGene's size, 38,000 people, 52 columns without names; bounds are read off the file."""
    frame = pl.read_csv(_file(folder, "ipums-br.dat.gz"), separator=" ", has_header=False)
    *columns, target = frame.columns
    features: list[Column] = []
    for name in columns:
        low, high = int(frame[name].min()), int(frame[name].max())  # type: ignore[arg-type]
        features.append(Category(name, [low, high]) if high - low == 1 else Numeric(name, low, max(high, low + 1)))
    return frame, Schema(features, target=Category(target, [0, 1]))


def _file(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise NoData(f"The folder has no {name}. Put it there, or name a folder that has it with --data.")
    return path
