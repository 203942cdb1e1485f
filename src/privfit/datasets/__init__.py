"""Generated tables that anybody may see, for demonstrations, tests and measurements."""

from privfit.datasets.census import census_schema, generated_census, with_high_income

__all__ = ["census_schema", "generated_census", "with_high_income"]
