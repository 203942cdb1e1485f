"""Mechanisms by name: all that `mechanism=` of a linear model takes, and the forms that others take there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from privfit.mechanisms.aggregation.block_fits import AggregatedWeights
from privfit.mechanisms.aggregation.sample_aggregate import SampleAndAggregate
from privfit.mechanisms.base import AnyMechanism, Mechanism
from privfit.mechanisms.functional.adassp import BOOSTED_ROUNDS, AdaSSP
from privfit.mechanisms.functional.functional import FunctionalMechanism
from privfit.mechanisms.genetic.privgene import PrivGene
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.output import OutputPerturbation

Named = Mapping[str, AnyMechanism]

MOMENTS: Named = MappingProxyType({"auto": FunctionalMechanism(), "functional": FunctionalMechanism()})
LEAST_SQUARES: Named = MappingProxyType(
    {**MOMENTS, "adassp": AdaSSP(), "boosted-adassp": AdaSSP(rounds=BOOSTED_ROUNDS)}
)
PERTURBATIONS: Named = MappingProxyType(
    {"auto": ObjectivePerturbation(), "objective": ObjectivePerturbation(), "output": OutputPerturbation()}
)
WEIGHTS: Named = MappingProxyType(
    {**PERTURBATIONS, "genetic": PrivGene(), "sample-and-aggregate": SampleAndAggregate()}
)
CLASSIFIERS: Named = MappingProxyType({**WEIGHTS, "functional": FunctionalMechanism()})

FORMS: dict[tuple[type, str], Callable[[Any], AnyMechanism]] = {(SampleAndAggregate, "weights"): AggregatedWeights}
"""How a mechanism for one kind of problem becomes one for another."""


def mechanism_for(given: Any, named: Named, kinds: tuple[str, ...]) -> AnyMechanism | None:
    """The mechanism of this name, or the one given, in a form that takes one of these kinds of problems; None where
    there is none.
    """
    found = named.get(given) if isinstance(given, str) else given
    if not isinstance(found, Mechanism):
        return None
    if found.solves in kinds:
        return found
    forms = (FORMS.get((own, kind)) for own in type(found).__mro__ for kind in kinds)
    return next((form(found) for form in forms if form is not None), None)
