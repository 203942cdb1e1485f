"""Naive Bayes on a private table."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms import NaiveBayes
from privfit.mechanisms.base import Description
from privfit.mechanisms.histograms.class_sums import MOST_BINS, automatic_bins
from privfit.models import saving
from privfit.models._docs import documented
from privfit.models.classes import public_classes
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.left_out import public_rows
from privfit.models.model_files import ModelFileError
from privfit.models.private import FitResult, PrivateModel, WeightedFit
from privfit.models.report import JSONObject
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.report.models import draw_class_profiles
from privfit.rows import quadratic_scores
from privfit.schema import Category, Geometry, Schema
from privfit.solvers import ClassProfiles
from privfit.tables import TableLike

Floats = NDArray[np.float64]
SLOPES = ("slope", "slope-or-missing")
"""Kinds of blocks that begin with a number."""
_Result = FitResult[NaiveBayes, float | None, ClassProfiles]


@documented
class GaussianNB(ClassifierMixin, WeightedFit, PrivateModel[NaiveBayes, float | None, ClassProfiles]):  # type: ignore[misc]
    """Naive Bayes: numbers are normal within every class, or fall into bins; levels have a share in every class.

    Counts, sums and squares of all classes are released once. Columns are taken to be independent within a class, so
    that few numbers have to be learned: a good start at small budgets.

    Parameters
    ----------
    priors : sequence of float or None
        Public shares of the classes, in the order of `classes_`. None takes the noisy shares of the table.
    numeric : {'auto', 'slope', 'bins'}
        How numeric columns without bins of their own enter: by mean and variance ("slope", as in scikit-learn), or by
        the shares of public bins ("bins", a histogram). "auto" is bins, the more the more rows and epsilon there are
        per column, and "slope" where there are too few for 7, or the number of rows is not known.
    expected_rows : int or None
        Under "add-remove" the numbers of rows are released with noise; with a public guess "auto" can choose bins.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public classes, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Noisy numbers of rows, or sums of their weights.
    class_prior_ : ndarray of shape (n_classes,)
        The shares of the classes.
    theta_ : ndarray of shape (n_classes, n_numbers)
        Means of the numeric columns, in the units of the table; `get_number_names()` names them.
    var_ : ndarray of shape (n_classes, n_numbers)
        Their variances.
    level_prob_ : dict of str to ndarray of shape (n_classes, n_levels)
        For every category, and every number in bins, the shares of its levels.

    See Also
    --------
    LogisticRegression : A classifier that does not take columns to be independent.
    privfit.baselines.Majority : One class for everybody.

    Notes
    -----
    Means, variances and shares of a class are shrunk towards those of all classes together as far as the noise explains
    the difference. A class has one row at least, of the largest weight if rows have weights.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/naive-bayes.md, Theorem 1; with weights Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["healthy", "ill"], 5000)
    >>> X = rng.normal(np.where(y == "ill", 38.5, 36.8), 0.5).reshape(-1, 1)
    >>> schema = pf.Schema([pf.Numeric("fever", 34, 42)], target=pf.Category("state", ["healthy", "ill"]))
    >>> model = pf.GaussianNB(epsilon=1.0, schema=schema).fit(X, y)
    >>> model.predict([[36.5], [39.0]]).tolist()
    ['healthy', 'ill']
    """

    _is_classifier = True
    _bins_used: int | Literal["auto"] | None = None
    """In how many bins numbers without bins of their own fall; None for a mean and a variance."""
    _choices: ClassVar[dict[str, tuple[object, ...]]] = {"numeric": ("auto", "slope", "bins")}

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        priors: Sequence[float] | NDArray[Any] | None = None,
        numeric: str = "auto",
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.priors = priors
        self.numeric = numeric
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.max_weight = max_weight
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    # -- for any rows that one may look at ---------------------------------------------------------

    @predicting
    def predict_joint_log_proba(self, X: TableLike) -> Floats:
        """Evaluate the logarithm of class share times density for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The logarithms, in the order of `classes_`.
        """
        check_is_fitted(self, "class_prior_")
        scores: Floats = quadratic_scores(predict_table(self, X), self.schema_, self._geometry, *self._densities())
        return scores

    def predict_log_proba(self, X: TableLike) -> Floats:
        """Predict the logarithm of the probability of each class for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The logarithms of the probabilities, in the order of `classes_`.
        """
        return np.asarray(log_softmax(self.predict_joint_log_proba(X), axis=1), dtype=np.float64)

    def predict_proba(self, X: TableLike) -> Floats:
        """Predict the probability of each class for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The probabilities, in the order of `classes_`.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)), dtype=np.float64)

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the most probable class of every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The classes.
        """
        likeliest = np.argmax(self.predict_joint_log_proba(X), axis=1)
        return np.asarray(self.classes_[likeliest])

    def get_number_names(self) -> NDArray[np.object_]:
        """Return the names of the columns of `theta_` and `var_`.

        Returns
        -------
        ndarray of shape (n_numbers,)
            The names.
        """
        check_is_fitted(self, "class_prior_")
        return np.array([block.labels[0] for block in self._geometry.blocks if block.kind in SLOPES], dtype=object)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw means and spreads of numbers, and shares of levels, within every class. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        check_is_fitted(self, "class_prior_")
        slopes = [block for block in self._geometry.blocks if block.kind in SLOPES]
        numbers = [
            {
                "name": block.column.name,
                "low": block.center - block.unit,
                "high": block.center + block.unit,
                "means": self.theta_[:, place].tolist(),
                "spreads": np.sqrt(self.var_[:, place]).tolist(),
            }
            for place, block in enumerate(slopes)
        ]
        levels = [
            {"title": block.column.name, "levels": list(block.labels), "shares": block_shares.tolist()}
            for block in self._geometry.blocks
            if (block_shares := self.level_prob_.get(block.column.name)) is not None
        ]
        return draw_class_profiles([str(one) for one in self.classes_], numbers, levels, path)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file: what it knows of the classes, schema, report and version.

        Loading it runs no code. The ledger is not in the file.

        Parameters
        ----------
        path : str or Path
            The file to write.

        See Also
        --------
        load_model : Read the model again.
        """
        check_is_fitted(self, "class_prior_")
        saving.save(self, Path(path))

    # -- wiring ------------------------------------------------------------------------------------

    def _chosen_mechanism(self) -> NaiveBayes:
        return NaiveBayes()

    def _bins_for(self, given: Input, parameters: PrivacyParameters) -> int | Literal["auto"] | None:
        if self.numeric != "auto":
            return "auto" if self.numeric == "bins" else None
        return automatic_bins(parameters, len(given.schema.features), public_rows(given, parameters))

    def _geometry_of(self, mechanism: NaiveBayes, schema: Schema) -> Geometry:
        if self._bins_used is None:
            return mechanism.geometry(schema)
        return mechanism.geometry(schema, numeric="bins", bins=self._bins_used)

    def _encoded(
        self, mechanism: NaiveBayes, given: Input, parameters: PrivacyParameters
    ) -> tuple[float | None, Geometry]:
        assert isinstance(given.schema.target, Category)
        self._checked_priors(len(given.schema.target.levels))
        self._bins_used = self._bins_for(given, parameters)
        return None if given.weights is None else given.weights.most, self._geometry_of(mechanism, given.schema)

    def _checked_priors(self, classes: int) -> Floats | None:
        if self.priors is None:
            return None
        given = list(self.priors)
        if not all(isinstance(share, Real) and 0 <= float(share) <= 1 for share in given) or len(given) != classes:
            wrong = True
        else:
            wrong = abs(sum(map(float, given)) - 1) > 1e-8
        if wrong:
            raise PrivacyError(
                f"priors={given!r} was given; it is one public share for each of {classes} classes, adding up to 1. "
                "Leave it out to use the noisy shares of the table. Nothing was charged."
            )
        return np.array(given, dtype=np.float64)

    def _keep(self, result: _Result) -> None:
        self._restore_profiles(result.fit.counts, result.fit.means, result.fit.variances)

    def _restore_profiles(self, counts: Floats, means: Floats, variances: Floats) -> None:
        """Set what is shown of the classes."""
        self._means, self._variances = means, variances
        self.class_count_ = counts
        given = self._checked_priors(len(counts))
        self.class_prior_ = counts / counts.sum() if given is None else given
        blocks = self._geometry.blocks
        slopes = [block for block in blocks if block.kind in SLOPES]
        units, centres = (np.array([getattr(block, name) for block in slopes]) for name in ("unit", "center"))
        self.theta_ = means[:, [block.start for block in slopes]] * units + centres
        with np.errstate(over="ignore"):  # of bounds so wide that squares are infinite
            self.var_ = variances * units**2
        self.level_prob_ = {
            block.column.name: means[:, block.start : block.stop] for block in blocks if block.kind not in SLOPES
        }

    def _densities(self) -> tuple[Floats, Floats, Floats]:
        """Logarithms of densities as a constant, a linear and a quadratic term of the encoded columns."""
        means, variances = self._means, self._variances
        with np.errstate(divide="ignore"):
            constant = np.log(self.class_prior_)
            linear, quadratic = np.log(np.where(means > 0, means, 1.0)), np.zeros_like(means)
        place = 0
        for block in self._geometry.blocks:
            if block.kind not in SLOPES:
                continue
            mean, variance = means[:, block.start], variances[:, place]
            linear[:, block.start] = mean / variance
            quadratic[:, block.start] = -0.5 / variance
            density = -0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance) - np.log(block.unit)
            constant = constant + density
            if block.width > 1:  # a missing value is encoded as 0 and a 1: in place of the density, its own share
                missing = means[:, block.start + 1]
                constant = constant + np.log1p(-missing)
                linear[:, block.start + 1] = np.log(missing) - density - np.log1p(-missing)
            place += 1
        return constant, linear, quadratic

    def _described(self, result: _Result) -> Description:
        notes = [f"noise on counts of rows has sd {result.fit.noise.sd:.3g}"]
        if isinstance(self._bins_used, int):
            notes.append(f"numbers without bins of their own fall into {self._bins_used}, by public facts")
        return Description(notes=tuple(notes))

    def _facts(self) -> JSONObject:
        return {
            "counts": self.class_count_.tolist(),
            "means": self._means.tolist(),
            "variances": self._variances.tolist(),
            "bins": self._bins_used,
        }

    def _restore_facts(self, facts: JSONObject) -> None:
        bins = facts.get("bins", "auto" if self.numeric == "bins" else None)
        if bins not in (None, "auto") and not (type(bins) is int and 2 <= bins <= MOST_BINS):
            raise ModelFileError("A model file of GaussianNB has a number of bins that it never has. Fit again.")
        self._bins_used = bins
        self._geometry = self._geometry_of(NaiveBayes(), self.schema_)
        counts, means, variances = (
            np.array(facts[name], dtype=np.float64) for name in ("counts", "means", "variances")
        )
        self.classes_ = public_classes(self.schema_)
        self._restore_profiles(counts, means.reshape(len(counts), -1), variances.reshape(len(counts), -1))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # at epsilon 1, noise dominates the few rows of scikit-learn's check
        tags.target_tags.required = True
        return tags
