"""What models share that are NOT private, and are there to be compared with."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from privfit.mechanisms.base import Description, PublicFacts
from privfit.models.private import FitResult, FitT, MechanismT, PrivateModel, ProblemT
from privfit.models.report import Report
from privfit.privacy import Event, Ledger, PrivacyError


class NotPrivate(PrivateModel[MechanismT, ProblemT, FitT]):
    """Base of the models without noise: a ledger is refused, the report says why, and nothing can be saved."""

    epsilon, delta, adjacency, rows_per_person = 1.0, 0.0, "replace-one", 1  # part of every fit; nothing is spent here
    expected_rows: int | None = None

    def _reasons_not_private(self) -> tuple[str, ...]:
        own = (reason for reason in super()._reasons_not_private() if "random_state" not in reason)
        return (*own, f"{type(self).__name__} fits the rows as they are, without noise")

    def _report(
        self,
        result: FitResult[MechanismT, ProblemT, FitT],
        described: Description,
        reasons: tuple[str, ...],
        public_rows: int | None,
        ledger: Ledger | None,
    ) -> Report:
        report = super()._report(result, described, reasons, public_rows, ledger)
        return replace(
            report,
            epsilon=math.inf,
            sensitivity=math.inf,
            noise_scale=0.0,
            noise="none",
            noise_deviation=0.0,
            released_values=0,
            repairs={},
            event={},
        )

    def save(self, path: str | Path) -> None:
        """Refuse to write a file: saved models are for showing, and this one is not private.

        Parameters
        ----------
        path : str or Path
            Not used.

        Raises
        ------
        PrivacyError
            Always.
        """
        raise PrivacyError(
            f"{type(self).__name__} is not private, and what is saved may be shown. Fit a private model to save one."
        )


def without_noise(name: str, facts: PublicFacts) -> Event:
    """An event without parts: nothing is drawn, nothing is hidden, and no ledger takes it."""
    parameters = facts.parameters
    return Event(name, parameters.budget.epsilon, adjacency=parameters.adjacency)
