"""Choosing among settings of a perturbed objective, privately."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.minima import Plan, Risk, RiskFit, check_number, check_price, public_rows
from privfit.mechanisms.perturbation import ObjectivePerturbation, Perturbation
from privfit.mechanisms.release import Release, check_ledger
from privfit.mechanisms.tilts import SAFE
from privfit.privacy import Budget, Event, Ledger, Noise, PrivacyError, Terms, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.shapes import Source
from privfit.rows import KeptRows, PartOfRows, Rows
from privfit.schema import Geometry

MOST_CANDIDATES = 100
DEALT_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class TunedPerturbation(Perturbation):
    """Choose among several settings privately: each is fitted on a part of the rows of its own, and one is chosen by its mistakes on one more part.

    Chaudhuri, Monteleoni and Sarwate (JMLR 2011), Algorithm 3. Every row is dealt to a part by coins of its own. (The paper's parts are equal: then a row that is added or removed can move
    others to another part.) The choice is by permute-and-flip, with the exponent epsilon z / 2 of the paper, z being the number of mistakes. Because every row takes part in one thing only,
    the whole costs epsilon once; but every fit sees a fraction of the rows, so that the default of LogisticRegression, which tunes nothing, is usually better.

    Parameters
    ----------
    candidates : instances of pf.ObjectivePerturbation and pf.OutputPerturbation. For classes only.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real arithmetic, up to a chance below 2^-64;
    docs/proofs/perturbation.md, Theorem 5.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    candidates: tuple[Perturbation, ...] = tuple(ObjectivePerturbation(ridge=ridge) for ridge in (1.0, 10.0, 100.0, 1000.0))

    name = "tuned"
    what: ClassVar[str] = "settings"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if self.ridge != "auto" or self.noise != "auto":
            raise PrivacyError(
                f"ridge={self.ridge!r} and noise={self.noise!r} were given to a choice among candidates; each candidate has its own. "
                "Write pf.TunedPerturbation(candidates=(pf.ObjectivePerturbation(ridge=1.0), ...))."
            )
        if not isinstance(self.candidates, tuple | list) or not 1 <= len(self.candidates) <= MOST_CANDIDATES:
            many = len(self.candidates) if isinstance(self.candidates, tuple | list) else repr(self.candidates)
            raise PrivacyError(
                f"{many} candidates were given; each is fitted on a part of the rows of its own, and there are from 1 to {MOST_CANDIDATES}. Give few: they can be far apart."
            )
        for candidate in self.candidates:
            if not isinstance(candidate, Perturbation) or isinstance(candidate, TunedPerturbation):
                raise PrivacyError(
                    f"The candidate {candidate!r} was given; candidates are pf.ObjectivePerturbation(...) and pf.OutputPerturbation(...). List some of them."
                )
            if candidate.noise == "gaussian":
                raise PrivacyError(
                    f"The candidate {candidate!r} was given; a private choice among fits costs epsilon alone, and Gaussian noise needs a delta. Leave its noise out."
                )
            candidate.check()

    def plans(self, geometry: Geometry, terms: Terms, objective: Risk, n_rows: int | None) -> tuple[tuple[Plan, ...], Event]:
        """One plan a candidate, and the price of all of them together. For several rows a person, each row is promised its share of epsilon."""
        if geometry.target is not None and geometry.target.kind == "slope":
            raise PrivacyError(
                "A number was given as target to a choice by mistakes, which only classes have. Choose one setting yourself. Nothing was charged."
            )
        if terms.budget.delta > 0:
            terms = replace(terms, budget=Budget(terms.budget.epsilon))
        people = int(terms.rows_per_person)
        each = Budget(terms.budget.epsilon / people * SAFE) if people > 1 else terms.budget
        own = replace(terms, budget=each, rows_per_person=1)
        plans = tuple(candidate.plan(geometry, own, objective, n_rows) for candidate in self.candidates)
        loudest = max(plans, key=lambda plan: plan.sd).event
        name = f"{loudest.mechanism.removesuffix(', Lambda raised')}, tuned over {len(plans)} {self.what}"
        event = replace(
            loudest, mechanism=name, epsilon=terms.budget.epsilon, rows_per_person=people, sensitivity=loudest.sensitivity * people
        )
        return plans, event

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Risk) -> Release[RiskFit]:
        """Read the rows, charge the ledger once, deal the rows, fit every candidate, and choose."""
        check_ledger(ledger, noise)
        check_price(ledger, rows, terms, lambda known: self.plans(rows.geometry, terms, objective, known)[1])
        kept = KeptRows(rows, objective.features)
        check_number(kept.n_rows, terms)
        plans, event = self.plans(rows.geometry, terms, objective, public_rows(kept.n_rows, terms))  # public facts only
        if ledger is not None:
            ledger.charge(event, dataset=rows.label)  # durable before any draw
        place = dealt(kept.n_rows, len(plans) + 1, cast(Source, noise))
        fits = [
            candidate._perturbed(plan, PartOfRows(kept, place == i), noise)
            for i, (candidate, plan) in enumerate(zip(self.candidates, plans, strict=True))
        ]
        held = PartOfRows(kept, place == len(plans))
        scale = laplace_scale(2 * int(terms.rows_per_person), exact(terms.budget.epsilon))
        choice = noise.select([-held.mistakes(weights) for weights in fits], scale)
        plan = plans[choice]
        fit = RiskFit(fits[choice], plan.ridge, plan.gradients.loss, objective.coupling, objective.features, repr(self.candidates[choice]))
        return Release(fit, event, noise.private, choice)


def dealt(rows: int, parts: int, source: Source) -> NDArray[np.uint8]:
    """A part for every row, each as likely as any other, whatever the other rows got."""
    sizes = [min(DEALT_AT_ONCE, rows - first) for first in range(0, rows, DEALT_AT_ONCE)]
    return np.concatenate([source.below(np.full(size, parts, dtype=np.int64)).astype(np.uint8) for size in sizes])
