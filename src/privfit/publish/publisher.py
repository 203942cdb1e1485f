"""What every publisher shares: a private table goes in, a weighted table that may be shown comes out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.models.private import PrivateModel
from privfit.privacy import PrivacyError, seeded_generator
from privfit.schema import SchemaError
from privfit.tables import columns_to_frame

Floats = NDArray[np.float64]

WEIGHT = "weight"


class Publisher(PrivateModel):
    """A table in place of a private one: rows that are public or made up, and a weight for each. Any model that takes weights can be trained on it.

    Subclasses set, when fitted, `columns_` (one array per column of the schema, by name) and `weights_`.
    """

    _target = "taken"

    columns_: dict[str, NDArray[Any]]
    weights_: Floats

    def to_frame(self) -> Any:
        """The published rows with a column "weight", as a polars frame; its `to_pandas()` gives a pandas one. Weights go into scikit-learn's `sample_weight`, or a SUM in SQL."""
        check_is_fitted(self)
        return columns_to_frame({**self.columns_, WEIGHT: self.weights_})

    def draw(self, n_rows: int, random_state: Any = None) -> Any:
        """So many rows drawn by weight, each as often as chance has it: a table without weights, for models that know none."""
        check_is_fitted(self)
        held = np.maximum(self.weights_, 0.0)
        if isinstance(n_rows, bool) or not hasattr(n_rows, "__index__") or n_rows < 1:
            raise PrivacyError(f"n_rows={n_rows!r} was given; it is a whole number of at least 1. Write draw(10_000).")
        if not held.sum() > 0:
            raise PrivacyError(
                "No row has a positive weight: all of the table was drowned in noise. Use a larger epsilon, or fewer columns."
            )
        places = seeded_generator(random_state).choice(len(held), size=int(n_rows), p=held / held.sum())
        return columns_to_frame({name: values[places] for name, values in self.columns_.items()})


def refuse_weight(names: Iterable[str]) -> None:
    """Refuse a column with the name of the weights, before anything is read."""
    if WEIGHT in names:
        raise SchemaError(
            f"The table has a column {WEIGHT!r}, which is the name of the weights. Rename it in the schema and in the table. Nothing was charged."
        )
