"""Every value of a table with noise of its own: the simplest way to publish, and the noisiest.

The baseline of Ji and Elkan, Machine Learning 93 (2013), section 7.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Description
from privfit.mechanisms.histograms.noisy_values import NoisyValues, all_blocks, diameter
from privfit.models._docs import documented
from privfit.models.inputs import Input
from privfit.models.private import FitResult
from privfit.privacy import Ledger, PrivacyParameters, Seed
from privfit.publish.publisher import Publisher, refuse_weight
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]


@documented
class LaplacePublisher(Publisher[NoisyValues, None, dict[str, Floats]]):
    """Publish a private table row by row, with Laplace noise on every value, a baseline.

    Each person could run it alone, without trust in who holds the table. The noise is far too large for most uses.
    Numbers keep their units; a category becomes one number per level around 0 and 1, named as in
    `get_feature_names_out` of the models (one of the two for two levels). The noise on each value has scale S /
    epsilon, S being the largest L1 distance of two records with numbers in [0, 1]: it grows with the number of columns.

    Parameters
    ----------
    delta : float
        Not needed and not spent: all noise here needs epsilon alone.
    trim : bool
        Whether to clip published values to their bounds. Each value is then possible, but means are biased towards the
        middle of the bounds.
    calibration : {'tight', 'paper'}
        "paper" publishes both of two levels and counts them as 2.
    adjacency : {'replace-one'}
        There is one published row per row, so that their number is public; "add-remove" is refused.
    expected_rows : int or None
        Not needed.

    Attributes
    ----------
    columns_ : dict of str to ndarray
        The published values, one array per encoded column, by name; rows are sorted by what is published.
    weights_ : ndarray of shape (n_published,)
        All 1.

    See Also
    --------
    DPME : A noisy histogram.
    ImportanceWeights : Weights for the rows of a public table.

    Notes
    -----
    A target in the schema is a column like the others.

    Guarantee: epsilon-DP, replace-one, for persons with at most `rows_per_person` rows; each row by itself is
    epsilon-DP too (local). docs/proofs/histograms.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rows = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> table = pf.baselines.LaplacePublisher(epsilon=1.0, schema=pf.Schema.box(-1, 1)).fit(rows)
    >>> bool(abs(table.columns_["x0"].mean()) < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        trim: bool = False,
        calibration: str = "tight",
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.trim = trim
        self.calibration = calibration
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def _chosen_mechanism(self) -> NoisyValues:
        mechanism = NoisyValues(self.trim, self.calibration)  # type: ignore[arg-type]
        mechanism.check()
        return mechanism

    def _encoded(self, mechanism: NoisyValues, given: Input, parameters: PrivacyParameters) -> tuple[None, Geometry]:
        geometry = mechanism.geometry(given.schema, None)
        refuse_weight([label for block in all_blocks(geometry) for label in block.labels])
        return None, geometry

    def _keep(self, result: FitResult[NoisyValues, None, dict[str, Floats]]) -> None:
        self.columns_ = dict(result.fit)
        self.weights_ = np.ones(len(next(iter(result.fit.values()))))

    def _described(self, result: FitResult[NoisyValues, None, dict[str, Floats]]) -> Description:
        apart = f"two records are at most {diameter(self._geometry)} apart, numbers in [0, 1]"
        return Description(notes=(f"{apart}; each row is also protected by itself",))
