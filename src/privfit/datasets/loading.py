"""The generated tables that are shipped with the library, and their schemas."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, NamedTuple

import polars as pl

from privfit.datasets.census import census_schema, with_high_income
from privfit.datasets.patients import patients_schema
from privfit.schema import Schema

CENSUS_FILE = "census.parquet"
PATIENTS_FILE = "patients.parquet"
CENSUS_ROWS = 20_000
"""Enough that a fit at epsilon 1 is close to one without privacy, in a file of some 200 kB. Chosen, not measured."""


class GeneratedTable(NamedTuple):
    """A generated table and its public facts; unpacks as `table, schema`.

    Attributes
    ----------
    table : polars.DataFrame
        Made-up people.
    schema : Schema
        Bounds and levels, from knowledge of the world.

    See Also
    --------
    load_census : People and their incomes.
    load_patients : Hospital stays.

    Examples
    --------
    >>> import privfit as pf
    >>> people, schema = pf.datasets.load_census()
    >>> people.height
    20000
    """

    table: pl.DataFrame
    schema: Schema


def load_census(target: Literal["income", "high_income"] = "income") -> GeneratedTable:
    """Load a table of 20,000 made-up people with an income, and its schema.

    The table is generated and not a census: nobody in it exists. It has the columns of census files that papers
    measure on (age, gender, marital status, years of education, disability, nativity, working hours, years of
    residence, dwelling, family size, children, cars), and an income that depends on them.

    Parameters
    ----------
    target : {'income', 'high_income'}, default='income'
        "income" in dollars a year, or "high_income": "yes" for incomes above 35,000 dollars.

    Returns
    -------
    GeneratedTable
        The table, a polars data frame, and its schema with that target.

    See Also
    --------
    load_patients : Hospital stays, with several rows of some patients and missing values.
    generated_census : Any number of such people.

    Examples
    --------
    >>> import privfit as pf
    >>> people, schema = pf.datasets.load_census()
    >>> people.shape, schema.target.name
    ((20000, 13), 'income')
    """
    schema = census_schema(target)
    people = _shipped(CENSUS_FILE)
    return GeneratedTable(people if target == "income" else with_high_income(people), schema)


def load_patients(target: Literal["readmitted", "cost"] = "readmitted") -> GeneratedTable:
    """Load a table of hospital stays of 12,000 made-up patients, and its schema.

    The table is generated: no such patient exists. Each row is a stay, and a patient has one to six of them, so the
    schema names `patient_id` as the person column. `haemoglobin` is missing where it was not measured.

    Parameters
    ----------
    target : {'readmitted', 'cost'}, default='readmitted'
        What the schema predicts: whether the patient came back within 30 days, or the cost of the stay in euros. The
        table has both columns.

    Returns
    -------
    GeneratedTable
        The table, a polars data frame, and its schema with that target.

    See Also
    --------
    load_census : People and their incomes.
    generated_patients : Any number of such patients.

    Examples
    --------
    >>> import privfit as pf
    >>> stays, schema = pf.datasets.load_patients()
    >>> stays["patient_id"].n_unique(), schema.person
    (12000, 'patient_id')
    """
    return GeneratedTable(_shipped(PATIENTS_FILE), patients_schema(target))


def _shipped(name: str) -> pl.DataFrame:
    with (files(__package__) / name).open("rb") as file:
        return pl.read_parquet(file.read())
