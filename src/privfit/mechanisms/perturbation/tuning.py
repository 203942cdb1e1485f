"""Choosing among settings of a perturbed objective, privately."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.base import Calibration, Perturbation
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.objective_noise import SAFE
from privfit.mechanisms.perturbation.problem import ERMFit, ERMPlan, ERMProblem, Gradients
from privfit.privacy import Budget, Draws, Event, PrivacyError, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import CANDIDATE, CERTIFICATE, Additive, Part, RandomBits, Selection
from privfit.privacy.samplers.norms import Source
from privfit.rows import CachedDesign, DesignSubset

MOST_CANDIDATES = 100
"""Each has one part of the rows in so many: more would leave fits of noise."""
AT_ONCE = 1 << 20
"""Rows whose parts are drawn in one call: bounds the memory of a call."""


@dataclass(frozen=True)
class TunedPlan(ERMPlan):
    """The plan of the candidate with the most noise, with the event of all of them; and every candidate's own plan."""

    candidates: tuple[ERMPlan, ...] = ()


@dataclass(frozen=True)
class TunedPerturbation(Perturbation):
    """Select one of several settings privately, each fitted on a part of the rows of its own.

    Algorithm 3 of Chaudhuri, Monteleoni and Sarwate [1]_: a setting is selected by its mistakes on one more part. Every
    row is assigned to a part by random bits of its own. (The paper's parts are equal: then a row that is added or
    removed can move others to another part.) The selection is by permute-and-flip, with the exponent epsilon z / 2 of
    the paper, z being the number of mistakes. Because every row takes part in one thing only, the whole costs epsilon
    once; but every fit sees a fraction of the rows, so that the default of LogisticRegression, which tunes nothing, is
    usually better.

    Parameters
    ----------
    ridge : float or 'auto', default='auto'
        Leave it out: every candidate has its own.
    noise : str, default='auto'
        Leave it out: every candidate has its own.
    candidates : tuple of ObjectivePerturbation and OutputPerturbation, optional
        The settings to choose from; objective perturbation with ridges 1, 10, 100 and 1000 if left out. For classes
        only.

    See Also
    --------
    ObjectivePerturbation : A single setting.
    privfit.baselines.PrivateERM : The same with the constants of the paper.

    Notes
    -----
    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real
    arithmetic, up to a probability below 2^-64; docs/proofs/perturbation.md, Theorem 5.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization", Journal
       of Machine Learning Research 12, 2011.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> candidates = (pf.ObjectivePerturbation(ridge=3.0), pf.ObjectivePerturbation(ridge=30.0))
    >>> mechanism = pf.TunedPerturbation(candidates=candidates)
    >>> schema = pf.Schema.box(-1, 1, target=["no", "yes"])
    >>> model = pf.LogisticRegression(epsilon=4.0, mechanism=mechanism, schema=schema)
    >>> bool(model.fit(X, y).score(X, y) > 0.7)
    True
    """

    candidates: tuple[Perturbation, ...] = tuple(
        ObjectivePerturbation(ridge=ridge) for ridge in (1.0, 10.0, 100.0, 1000.0)
    )

    name = "tuned"
    takes_weights = True
    what: ClassVar[str] = "settings"

    def __init_subclass__(cls, **options: object) -> None:
        """What is derived from it takes no weights of rows unless it says so."""
        super().__init_subclass__(**options)
        cls.takes_weights = cls.__dict__.get("takes_weights", False)

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if self.ridge != "auto" or self.noise != "auto":
            raise PrivacyError(
                f"ridge={self.ridge!r} and noise={self.noise!r} were given to a choice among candidates; each "
                "candidate has its own. "
                "Write pf.TunedPerturbation(candidates=(pf.ObjectivePerturbation(ridge=1.0), ...))."
            )
        if not isinstance(self.candidates, tuple | list) or not 1 <= len(self.candidates) <= MOST_CANDIDATES:
            many = len(self.candidates) if isinstance(self.candidates, tuple | list) else repr(self.candidates)
            raise PrivacyError(
                f"{many} candidates were given; each is fitted on a part of the rows of its own, and there are from 1 "
                f"to {MOST_CANDIDATES}. Give few: they can be far apart."
            )
        for candidate in self.candidates:
            if not isinstance(candidate, Perturbation) or isinstance(candidate, TunedPerturbation):
                raise PrivacyError(
                    f"The candidate {candidate!r} was given; candidates are pf.ObjectivePerturbation(...) and "
                    "pf.OutputPerturbation(...). List some of them."
                )
            if candidate.noise == "gaussian":
                raise PrivacyError(
                    f"The candidate {candidate!r} was given; a private choice among fits costs epsilon alone, and "
                    "Gaussian noise needs a delta. Leave its noise out."
                )
            if isinstance(candidate, ObjectivePerturbation) and candidate.interactions:
                raise PrivacyError(
                    f"interactions={candidate.interactions!r} was given to a candidate; fits are compared by their "
                    "weights alone. Leave interactions out."
                )
            candidate.check()

    def reasons_not_private(self, problem: ERMProblem) -> tuple[str, ...]:
        """Those of its candidates."""
        return tuple(dict.fromkeys(reason for one in self.candidates for reason in one.reasons_not_private(problem)))

    def plan(self, facts: PublicFacts, problem: ERMProblem) -> TunedPlan:
        """One plan a candidate, and the price of all of them together.

        For several rows a person, each row is promised its share of epsilon.
        """
        target, parameters = facts.geometry.target, facts.parameters
        if target is not None and target.kind == "slope":
            raise PrivacyError(
                "A number was given as target to a choice by mistakes, which only classes have. Choose one setting "
                "yourself. Nothing was charged."
            )
        epsilon, rows_per_person = parameters.budget.epsilon, int(parameters.rows_per_person)
        each = Budget(epsilon / rows_per_person * SAFE if rows_per_person > 1 else epsilon)
        own = replace(facts, parameters=replace(parameters, budget=each, rows_per_person=1))
        plans = tuple(candidate.plan(own, problem) for candidate in self.candidates)
        most = max(plans, key=lambda plan: plan.sd)
        event = Event(
            f"{most.event.mechanism.removesuffix(', Lambda raised')}, tuned over {len(plans)} {self.what}",
            epsilon,
            adjacency=parameters.adjacency,
            rows_per_person=rows_per_person,
            parts=(
                RandomBits(purpose="partition of the rows"),
                *(part for plan in plans for part in _parts_of(plan, plan is most, rows_per_person)),
                Selection(
                    rule="permute-and-flip",
                    scale=laplace_scale(2 * rows_per_person, exact(epsilon)),
                    sensitivity=2 * rows_per_person,
                    purpose="choice of a candidate",
                ),
            ),
        )
        inherited = {field.name: getattr(most, field.name) for field in fields(ERMPlan)}
        return TunedPlan(**{**inherited, "event": event, "facts": facts}, candidates=plans)

    def draw(self, data: CachedDesign, plan: ERMPlan, draws: Draws) -> ERMFit:
        """Partition the rows, fit every candidate, and choose."""
        assert isinstance(plan, TunedPlan)
        plans = plan.candidates
        place = partition(data.n_rows, len(plans) + 1, draws.random_integers())
        found = [
            candidate.draw(DesignSubset(data, place == i), own, draws)
            for i, (candidate, own) in enumerate(zip(self.candidates, plans, strict=True))
        ]
        held = DesignSubset(data, place == len(plans))
        choice = draws.select([-held.mistakes(fit.weights) for fit in found])
        return self._chosen(choice, found[choice])

    def _chosen(self, choice: int, fit: ERMFit) -> ERMFit:
        """The fit of the candidate that was chosen; how many rows it saw is not public."""
        return replace(fit, setting=repr(self.candidates[choice]), n_rows=None)

    def _calibrated(
        self, kind: str, gradients: Gradients, facts: PublicFacts, beside: tuple[float, ...]
    ) -> Calibration:
        raise NotImplementedError  # every candidate has its own

    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        raise NotImplementedError  # every candidate has its own


def _parts_of(plan: ERMPlan, told: bool, rows_per_person: int) -> list[Part]:
    """What a candidate draws, without shares of the price, because candidates have rows of their own; a report
    describes one of them.
    """
    found: list[Part] = []
    for part in plan.event.parts:
        assert isinstance(part, Additive)
        if part.purpose == CERTIFICATE:
            found.append(replace(part, epsilon=0.0))
        else:
            sensitivity = part.sensitivity * rows_per_person
            found.append(replace(part, sensitivity=sensitivity, purpose=part.purpose if told else CANDIDATE))
    return found


def partition(rows: int, parts: int, source: Source) -> NDArray[np.uint8]:
    """A part for every row, each as likely as any other, whatever the other rows got."""
    sizes = [min(AT_ONCE, rows - first) for first in range(0, max(rows, 1), AT_ONCE)]
    return np.concatenate([source.below(np.full(size, parts, dtype=np.int64)).astype(np.uint8) for size in sizes])
