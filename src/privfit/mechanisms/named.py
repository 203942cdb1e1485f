"""Mechanisms by name: all that `mechanism=` of a linear model takes, and the forms that others take there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

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
from privfit.privacy import PrivacyError

MechanismT_co = TypeVar("MechanismT_co", bound=AnyMechanism, covariant=True)
ERMMechanism = Mechanism[ERMProblem, Any, Any, Any]
"""Fits weights to a convex loss."""
MomentMechanism = Mechanism[QuadraticProblem, Any, Any, Any]
"""Fits weights to a loss of degree two, from noisy moments."""

FORMS: dict[tuple[type, str], Callable[[Any], AnyMechanism]] = {
    (SampleAndAggregate, "weights"): AggregatedWeights,
    (FunctionalMechanism, "logistic"): QuadraticLogistic,
}
"""How a mechanism for one kind of problem becomes one for another."""


@dataclass(frozen=True)
class MechanismChoice(Generic[MechanismT_co]):
    """The mechanisms that an estimator knows by name, the kinds of problems that it can state (`Mechanism.solves`), and
    the classes whose instances it takes, as an error message lists them.
    """

    named: Mapping[str, AnyMechanism]
    kinds: tuple[str, ...]
    classes: str

    def choose(self, given: object, model: str) -> MechanismT_co:
        """The mechanism of this name, or the one given, in a form that solves a problem of this estimator; checked."""
        found = self.named.get(given) if isinstance(given, str) else given
        chosen = self._in_form(found) if isinstance(found, Mechanism) else None
        if chosen is None:
            raise PrivacyError(
                f"mechanism={given!r} was given to {model}; it knows {', '.join(map(repr, self.named))}, and "
                f"{self.classes}. Use 'auto' if in doubt."
            )
        chosen.check()
        return cast("MechanismT_co", chosen)

    def _in_form(self, found: AnyMechanism) -> AnyMechanism | None:
        if found.solves in self.kinds:
            return found
        forms = (FORMS.get((base, kind)) for base in type(found).__mro__ for kind in self.kinds)
        return next((form(found) for form in forms if form is not None), None)


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

MOMENTS = MechanismChoice[FunctionalMechanism](_FUNCTIONAL, ("moments",), "pf.FunctionalMechanism(...)")
LEAST_SQUARES = MechanismChoice[MomentMechanism](
    {**_FUNCTIONAL, "adassp": AdaSSP(), "boosted-adassp": AdaSSP(rounds=BOOSTED_ROUNDS)},
    ("moments", "least-squares"),
    "pf.FunctionalMechanism(...) and pf.AdaSSP(...)",
)
PERTURBATIONS = MechanismChoice[Perturbation](
    _PERTURBATIONS, ("erm",), "pf.ObjectivePerturbation(...) and pf.OutputPerturbation(...)"
)
WEIGHTS = MechanismChoice[ERMMechanism](
    _WEIGHTS,
    ("erm", "weights"),
    "pf.ObjectivePerturbation(...), pf.OutputPerturbation(...), pf.PrivGene(...) and pf.SampleAndAggregate(...)",
)
CLASSIFIERS = MechanismChoice[ERMMechanism](
    {**_WEIGHTS, "functional": FunctionalMechanism()},
    ("erm", "weights", "logistic"),
    "pf.ObjectivePerturbation(...), pf.OutputPerturbation(...), pf.FunctionalMechanism(...), pf.PrivGene(...) and "
    "pf.SampleAndAggregate(...)",
)
