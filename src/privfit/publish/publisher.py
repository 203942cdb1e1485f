"""What every publisher shares: a private table goes in, a weighted table that may be shown comes out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.models.private import FitT, MechanismT, PrivateModel, ProblemT
from privfit.privacy import PrivacyError, Seed, seeded_generator
from privfit.schema import SchemaError
from privfit.tables import Frame, columns_to_frame

Floats = NDArray[np.float64]

WEIGHT = "weight"


class Publisher(PrivateModel[MechanismT, ProblemT, FitT]):
    """Base of the publishers: a weighted table, public or synthetic, in place of a private one.

    Any model that takes weights can be trained on it.

    Attributes
    ----------
    columns_ : dict of str to ndarray
        The published rows, one array per column, by name.
    weights_ : ndarray of shape (n_published,)
        One weight per published row.

    See Also
    --------
    ImportanceWeights : Weights for the rows of a public table.
    privfit.baselines.DPME : A noisy histogram.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rows = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> table = pf.baselines.DPME(epsilon=1.0, schema=pf.Schema.box(-1, 1), cells=4).fit(rows)
    >>> isinstance(table, pf.publish.Publisher), table.to_frame().columns
    (True, ['x0', 'weight'])
    """

    _target = "taken"

    columns_: dict[str, NDArray[Any]]
    weights_: Floats

    def to_frame(self) -> Frame:
        """Return the published rows with a column "weight".

        Weights go into scikit-learn's `sample_weight`, or a SUM in SQL.

        Returns
        -------
        polars.DataFrame
            One row per published row; its `to_pandas()` gives a pandas frame.
        """
        check_is_fitted(self)
        return columns_to_frame({**self.columns_, WEIGHT: self.weights_})

    def draw(self, n_rows: int, random_state: Seed = None) -> Frame:
        """Draw rows at random, with probabilities by weight: a table without weights, for models that take none.

        A row may be drawn several times. Negative weights count as 0.

        Parameters
        ----------
        n_rows : int
            Number of rows to draw.
        random_state : int, Generator, RandomState or None, default=None
            Source of the draw. The published rows are public, so a seed reveals nothing.

        Returns
        -------
        polars.DataFrame
            The rows that were drawn.

        Raises
        ------
        PrivacyError
            If no row has a positive weight.
        """
        check_is_fitted(self)
        held = np.maximum(self.weights_, 0.0)
        if isinstance(n_rows, bool) or not hasattr(n_rows, "__index__") or n_rows < 1:
            raise PrivacyError(f"n_rows={n_rows!r} was given; it is an integer of at least 1. Write draw(10_000).")
        if not held.sum() > 0:
            raise PrivacyError(
                "No row has a positive weight: all counts are dominated by noise. Use a larger epsilon, or fewer "
                "columns."
            )
        places = seeded_generator(random_state).choice(len(held), size=int(n_rows), p=held / held.sum())
        return columns_to_frame({name: values[places] for name, values in self.columns_.items()})


AnyPublisher = Publisher[Any, Any, Any]


def refuse_weight(names: Iterable[str]) -> None:
    """Refuse a column with the name of the weights, before anything is read."""
    if WEIGHT in names:
        raise SchemaError(
            f"The table has a column {WEIGHT!r}, which is the name of the weights. Rename it in the schema and in the "
            "table. Nothing was charged."
        )
