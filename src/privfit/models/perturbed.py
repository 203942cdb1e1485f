"""What models share that are fitted by perturbing an objective or its minimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from privfit.features import FourierFeatures, ShortenedRows
from privfit.losses import ConvexLoss
from privfit.mechanisms import ERMFit, ERMProblem, Release
from privfit.mechanisms.base import AnyMechanism, Numbers
from privfit.mechanisms.named import PERTURBATIONS
from privfit.mechanisms.perturbation.defaults import DROWNED, automatic_numbers, coupling_for
from privfit.models.base import PrivateLinearModel, shown_weights
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.report import Report
from privfit.models.saving import ModelFileError
from privfit.privacy import PrivacyError, PrivacyParameters
from privfit.rows import Interactions, Pair, count_rows, feature_scores
from privfit.schema import AUTO_KNOTS, Category, Numeric, Schema

Floats = NDArray[np.float64]

KERNELS = ("linear", "rbf")
USUAL_PAIRS = 100
PUBLIC_SEED = 20081208
USUAL_GAMMA, LEVELS_APART = 4.0, 3
"""Two levels are at a squared distance of 2, two numbers between -1 and 1 of 2/3 on average; chosen on generated data:
python papers/experiments/kernels.py.
"""
MOST_GAMMA = 1e6
MOST_COMPONENTS = 10_000
DROWNED_NOTE = (
    "noise drowned this fit: it is large compared with what so many rows can tell, and predicted classes may be little "
    "better than guesses; more rows, fewer columns or a larger epsilon would help"
)
SHORTEST, LONGEST, MOST_NORM = 1e-3, 1e6, 1e300
ANY_TABLE = Schema([Numeric("any", 0, 1)])
"""Stands for a table of which nothing is known: whether a loss is private does not depend on the schema."""


class PerturbedModel(PrivateLinearModel):
    """A model whose release is its weights.

    Parameters
    ----------
    numeric : {'auto', 'slope', 'bins', 'splines'}
        Encoding of numeric columns that have no bins of their own: one slope, one indicator per bin, or linear
        B-splines. "auto" is "slope" where rows times epsilon over columns is below 200, and splines with 8 knots from
        there on or where the number of rows is not known beforehand; it is "slope" for the functional mechanism.
    kernel : {'linear', 'rbf'}
        "rbf" fits a linear model of random Fourier features, drawn from a public seed: a model that is nonlinear in all
        columns jointly.
    gamma : float or 'auto'
        For "rbf", the width of the kernel exp(-gamma |x - x'|^2) between encoded rows. "auto" is 4 over the number of
        columns, a category counting as three. With a kernel, numbers enter scaled to [-1, 1] unless `numeric` says
        otherwise.
    n_components : int
        For "rbf", the number of Fourier features. There is no intercept beside them.
    row_norm : float or None
        Public bound of the L2 norm of a row of numbers, such as 1 for normalised embeddings. Longer rows are scaled
        down to it when fitting, not when predicting. The noise then depends on this norm and not on the number of
        columns. It needs a schema such as `pf.Schema.box(-1, 1)`, whose columns are all numeric with the same bounds on
        both sides of zero; every column enters as a slope.
    """

    coef_: Any
    intercept_: Any
    _features: FourierFeatures | None
    _pairs: tuple[Pair, ...]
    _named = PERTURBATIONS
    _kinds: tuple[str, ...] = ("erm",)

    _mechanisms = "'auto', 'objective', 'output', pf.ObjectivePerturbation(...) and pf.OutputPerturbation(...)"

    def _convex_loss(self, schema: Schema) -> ConvexLoss:
        """The loss, of a target scaled to [-1, 1] or of the classes -1 and 1."""
        raise NotImplementedError

    def _problem(self, mechanism: AnyMechanism, schema: Schema) -> ERMProblem:
        """What is minimised."""
        target = schema.target
        classes = len(target.levels) if isinstance(target, Category) and len(target.levels) > 2 else 1
        loss = self._convex_loss(schema)
        knots = getattr(self, "_knots_used", AUTO_KNOTS)
        return ERMProblem(
            loss,
            self._checked_intercept(),
            classes,
            coupling_for(loss, classes),
            self._feature_map(mechanism, schema),
            knots,
        )

    def _reasons_of(self, mechanism: AnyMechanism) -> tuple[str, ...]:
        return mechanism.reasons_not_private(ERMProblem(self._convex_loss(ANY_TABLE)))

    def _numbers(self, mechanism: AnyMechanism, given: Input, terms: PrivacyParameters) -> tuple[Numbers, int]:
        usual = super()._numbers(mechanism, given, terms)
        if self.numeric == "auto" and getattr(self, "kernel", "linear") != "linear":
            return "slope", usual[1]  # a kernel bends by itself
        if not mechanism.chooses_encoding:
            return mechanism.numbers(self.numeric, usual[0]), usual[1]
        if self.numeric != "auto" or usual[0] != "splines":
            return usual
        if self._row_norm is not None:
            return "slope", usual[1]
        known = count_rows(given.table, given.schema) if terms.adjacency == "replace-one" else terms.expected_rows
        return automatic_numbers(terms, len(given.schema.features), known)

    def _mixes_columns(self) -> bool:
        return bool(getattr(self, "kernel", "linear") != "linear")

    @property
    def _row_norm(self) -> Any:
        """The length that rows are told to have; not all of these models can be told."""
        return getattr(self, "row_norm", None)

    # -- features ----------------------------------------------------------------------------------

    def _feature_map(self, mechanism: AnyMechanism, schema: Schema) -> FourierFeatures | ShortenedRows | None:
        """The public features in front of the linear model, if it has a kernel or rows of a public length."""
        kernel = getattr(self, "kernel", "linear")
        if kernel not in KERNELS:
            raise PrivacyError(f"kernel={kernel!r} was given; it is one of {KERNELS}. Use 'linear' if in doubt.")
        if self._row_norm is not None:
            return self._shortened(mechanism, schema)
        if kernel == "linear":
            return None
        style = getattr(self, "_numeric_used", None) or self._numeric_style(mechanism)
        knots = getattr(self, "_knots_used", AUTO_KNOTS)
        anchored: Literal["no", "all"] = "no" if self._checked_intercept() else "all"
        width = schema.geometry(numeric=style, intercept=False, several=True, knots=knots, anchored=anchored).n_columns
        spread = sum(
            1 if isinstance(column, Numeric) and column.bins is None else LEVELS_APART for column in schema.features
        )
        gamma = USUAL_GAMMA / spread if self.gamma == "auto" else self.gamma
        for name, value, most in (("gamma", gamma, MOST_GAMMA), ("n_components", self.n_components, MOST_COMPONENTS)):
            whole = isinstance(value, int | np.integer)
            fits = whole if name == "n_components" else whole or isinstance(value, float | np.floating)
            if isinstance(value, bool) or not fits or not 0 < value <= most:
                raise PrivacyError(
                    f"{name}={value!r} was given; it is a positive {'whole ' * (name == 'n_components')}number up to "
                    f"{most:g}, chosen without looking at the rows. Leave it out if in doubt."
                )
        return FourierFeatures(width, max(1, int(self.n_components) // 2), float(gamma), PUBLIC_SEED)

    def _shortened(self, mechanism: AnyMechanism, schema: Schema) -> ShortenedRows:
        """Rows no longer than `row_norm`, in the units of the table: one bound for all columns, on both sides of zero,
        so that lengths mean the same in both.
        """
        norm = self._row_norm
        if (
            isinstance(norm, bool)
            or not isinstance(norm, int | float | np.integer | np.floating)
            or not 0 < norm < np.inf
            or norm > MOST_NORM
        ):
            raise PrivacyError(
                f"row_norm={norm!r} was given; it is a positive number, the length that no row exceeds. Leave it out "
                "if in doubt."
            )
        if self.kernel != "linear" or self.numeric not in ("auto", "slope") or mechanism.solves != "erm":
            raise PrivacyError(
                f"row_norm={norm!r} was given with a kernel, bins, splines or another mechanism; it is for linear "
                "models by objective or output perturbation. Leave one of them out."
            )
        bounds = {
            (column.low, column.high) if isinstance(column, Numeric) and column.bins is None else None
            for column in schema.features
        }
        most = next(iter(bounds))
        if len(bounds) > 1 or most is None or most[0] != -most[1]:
            raise PrivacyError(
                f"row_norm={norm!r} was given with a schema whose columns are not all numbers with the same bounds on "
                "both sides of zero. "
                "Give such a schema, for example pf.Schema.box(-1, 1, ...), or leave row_norm out."
            )
        if norm < SHORTEST * most[1]:
            raise PrivacyError(
                f"row_norm={norm!r} was given with bounds of {most[1]:g}, beside which such rows are hardly told from "
                "zero. Give bounds near row_norm: no number of a row can exceed it."
            )
        return ShortenedRows(
            len(schema.features), min(float(norm), LONGEST * most[1]) / most[1], self._checked_intercept()
        )

    # -- results -----------------------------------------------------------------------------------

    def _keep_weights(self, fit: ERMFit) -> None:
        """coef_ and intercept_, one row per predictor, and what they need to predict."""
        self._pairs = ()
        if isinstance(fit.features, ShortenedRows):
            self._features = None
            bound = next(column.high for column in self.schema_.features if isinstance(column, Numeric))
            weights = fit.weights.T
            self.coef_ = weights[:, int(fit.features.constant) :] / (bound * fit.features.unit)
            self.intercept_ = weights[:, 0].copy() if fit.features.constant else np.zeros(len(weights))
            return
        self._features = fit.features if isinstance(fit.features, FourierFeatures) else None
        if fit.features is not None:
            self.coef_, self.intercept_ = fit.weights.T.copy(), np.zeros(fit.weights.shape[1])
            return
        shown = [
            shown_weights(fit.weights[:, k], self._geometry, self._checked_intercept())
            for k in range(fit.weights.shape[1])
        ]
        self._pairs = tuple(table.columns for table in fit.pairs)
        tables = [table.scores for table in fit.pairs]
        self.coef_, self.intercept_ = (
            np.array([np.concatenate([coef, *tables]) for coef, _ in shown]),
            np.array([const for _, const in shown]),
        )

    def _kept_for_later(self, mechanism: AnyMechanism, release: Any, fit: Any, objective: Any) -> Any:
        return super()._kept_for_later(mechanism, release, fit, objective) if mechanism.solves == "moments" else None

    def _notes(self, mechanism: AnyMechanism) -> tuple[str, ...]:
        if self._row_norm is None:
            return ()
        return (f"rows longer than {self._row_norm:g}, which is taken as public, were shortened to it",)

    def _report(self, mechanism: AnyMechanism, release: Release[Any], fit: Any, reasons: tuple[str, ...]) -> Report:
        report = super()._report(mechanism, release, fit, reasons)
        if not isinstance(self.schema_.target, Category):  # the rule was found for classes
            return report
        level = mechanism.relative_noise(fit, release.event, self._geometry)
        if level is None:
            return report
        told = (DROWNED_NOTE,) if level > DROWNED else ()
        return replace(report, repairs=report.repairs | {"relative_noise": level}, notes=(*report.notes, *told))

    @property
    def feature_importances_(self) -> Floats:
        """Importance of each input column, in the order of the schema's features.

        As for every linear model. The features of a kernel mix all columns, so a model with a kernel has no
        importances.

        Returns
        -------
        ndarray of shape (n_features_in_,)
            One importance per input column.
        """
        if getattr(self, "_features", None) is not None:
            raise AttributeError(
                "feature_importances_ was asked of a model with a kernel, whose features mix all columns. Fit one with "
                "kernel='linear'."
            )
        return super().feature_importances_

    @predicting
    def _scores(self, X: Any) -> Floats:
        features = getattr(self, "_features", None)
        if features is None:
            return super()._scores(X)
        table = predict_table(self, X)
        scores = feature_scores(table, self.schema_, self._geometry, features, self.coef_.T, self.intercept_)
        return scores[:, 0] if len(self.coef_) == 1 and scores.ndim > 1 else scores

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of `coef_`.

        A numeric column keeps its own name; a category has one column per level, called name_level; a cell of an
        interaction has both names; the features of a kernel are numbered.

        Parameters
        ----------
        input_features : object, default=None
            Not used; it is here for scikit-learn's interface.

        Returns
        -------
        ndarray of object
            One name per column of `coef_`.
        """
        features = getattr(self, "_features", None)
        if features is None:
            names = super().get_feature_names_out(input_features)
            interactions = Interactions(self._geometry)
            return np.concatenate(
                [names, *(np.array(interactions.names(pair), dtype=object) for pair in getattr(self, "_pairs", ()))]
            )
        return np.array([f"{wave}_{i}" for wave in ("cos", "sin") for i in range(features.pairs)], dtype=object)

    def _facts(self) -> dict[str, Any]:
        """What a saved model carries besides coefficients, schema and report."""
        features = getattr(self, "_features", None)
        if features is not None:
            return {"fourier": [features.columns, features.pairs, features.gamma, features.seed]}
        pairs = getattr(self, "_pairs", ())
        interactions = Interactions(self._geometry)
        return (
            {"pairs": [list(pair) for pair in pairs], "cells": [interactions.n_cells(pair) for pair in pairs]}
            if pairs
            else {}
        )

    def _restore_facts(self, facts: dict[str, Any]) -> None:
        if "fourier" in facts:
            columns, pairs, gamma, seed = facts["fourier"]
            self._features = FourierFeatures(int(columns), int(pairs), float(gamma), int(seed))
        self._pairs = self._checked_pairs(facts["pairs"], facts["cells"]) if "pairs" in facts else ()

    def _checked_pairs(self, pairs: list[list[int]], cells: list[int]) -> tuple[Pair, ...]:
        """The pairs of a model file, if they are those of its schema and coefficients."""
        interactions = Interactions(self._geometry)
        found = cast("tuple[Pair, ...]", tuple(map(tuple, pairs)))
        known = {*interactions.pairs(len(self.coef_[0])), *interactions.alone()}
        whole = all(isinstance(place, int) for pair in found for place in pair)
        fitting = (
            whole
            and len(set(found)) == len(found)
            and known.issuperset(found)
            and [interactions.n_cells(pair) for pair in found] == cells
        )
        if not fitting or len(self._geometry.feature_names) + sum(cells) != len(self.coef_[0]):
            raise ModelFileError(
                "The tables of a model file do not go with its schema and coefficients. It was changed, or saved by "
                "another version: fit again."
            )
        return found
