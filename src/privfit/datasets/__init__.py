"""Generated tables that anybody may see, for examples, tests and measurements: nobody in them exists."""

from privfit.datasets.census import census_schema, generated_census, with_high_income
from privfit.datasets.loading import load_census, load_patients
from privfit.datasets.patients import generated_patients, patients_schema

__all__ = [
    "census_schema",
    "generated_census",
    "generated_patients",
    "load_census",
    "load_patients",
    "patients_schema",
    "with_high_income",
]
