"""Mechanisms by name: all that `mechanism=` of a linear model takes, and the forms that others take there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privfit.mechanisms.aggregation.block_fits import AggregatedWeights
from privfit.mechanisms.aggregation.sample_aggregate import SampleAndAggregate
from privfit.mechanisms.base import AnyMechanism, Mechanism
from privfit.mechanisms.functional.adassp import BOOSTED_ROUNDS, AdaSSP
from privfit.mechanisms.functional.functional import FunctionalMechanism
from privfit.mechanisms.functional.problem import QuadraticProblem
from privfit.mechanisms.functional.quadratic_logistic import QuadraticLogistic
from privfit.mechanisms.genetic.privgene import PrivGene
from privfit.mechanisms.perturbation.base import Perturbation
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.output import OutputPerturbation
from privfit.mechanisms.perturbation.problem import ERMProblem
from privfit.mechanisms.perturbation.regression import ObjectiveRegression
from privfit.models.private import MechanismChoice

ERMMechanism = Mechanism[ERMProblem, Any, Any, Any]
"""Fits weights to a convex loss."""
MomentMechanism = Mechanism[QuadraticProblem, Any, Any, Any]
"""Fits weights to a loss of degree two, from noisy moments."""

FORMS: dict[tuple[type, str], Callable[[Any], AnyMechanism]] = {
    (SampleAndAggregate, "weights"): AggregatedWeights,
    (FunctionalMechanism, "logistic"): QuadraticLogistic,
}
"""How a mechanism for one kind of problem becomes one for another."""


_FUNCTIONAL: dict[str, AnyMechanism] = {"auto": FunctionalMechanism(), "functional": FunctionalMechanism()}
_PERTURBATIONS: dict[str, AnyMechanism] = {
    "auto": ObjectivePerturbation(),
    "objective": ObjectivePerturbation(),
    "output": OutputPerturbation(),
}
_WEIGHTS: dict[str, AnyMechanism] = {
    **_PERTURBATIONS,
    "genetic": PrivGene(),
    "sample-and-aggregate": SampleAndAggregate(),
}

MOMENTS = MechanismChoice[FunctionalMechanism](_FUNCTIONAL, ("moments",), "pf.FunctionalMechanism(...)", FORMS)
PENALISED = MechanismChoice[FunctionalMechanism | ObjectiveRegression](
    {**_FUNCTIONAL, "objective": ObjectiveRegression()},
    ("moments", ObjectiveRegression.solves),
    "pf.FunctionalMechanism(...) and pf.ObjectiveRegression(...)",
    FORMS,
)
LEAST_SQUARES = MechanismChoice[MomentMechanism](
    {
        **_FUNCTIONAL,
        "objective": ObjectiveRegression(),
        "adassp": AdaSSP(),
        "boosted-adassp": AdaSSP(rounds=BOOSTED_ROUNDS),
    },
    ("moments", "least-squares", ObjectiveRegression.solves),
    "pf.FunctionalMechanism(...), pf.ObjectiveRegression(...) and pf.AdaSSP(...)",
    FORMS,
)
ADDITIVE = MechanismChoice[ObjectiveRegression](
    {"auto": ObjectiveRegression(), "objective": ObjectiveRegression()},
    (ObjectiveRegression.solves,),
    "pf.ObjectiveRegression(...)",
)
PERTURBATIONS = MechanismChoice[Perturbation](
    _PERTURBATIONS, ("erm",), "pf.ObjectivePerturbation(...) and pf.OutputPerturbation(...)", FORMS
)
WEIGHTS = MechanismChoice[ERMMechanism](
    _WEIGHTS,
    ("erm", "weights"),
    "pf.ObjectivePerturbation(...), pf.OutputPerturbation(...), pf.PrivGene(...) and pf.SampleAndAggregate(...)",
    FORMS,
)
CLASSIFIERS = MechanismChoice[ERMMechanism](
    {**_WEIGHTS, "functional": FunctionalMechanism()},
    ("erm", "weights", "logistic"),
    "pf.ObjectivePerturbation(...), pf.OutputPerturbation(...), pf.FunctionalMechanism(...), pf.PrivGene(...) and "
    "pf.SampleAndAggregate(...)",
    FORMS,
)
