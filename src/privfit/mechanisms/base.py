"""Mechanism: from bounded rows to one release, with noise chosen from public facts alone.

The order of steps is written once, in `Mechanism.release`: plan, check the ledger, read, charge, draw.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, final

from privfit.privacy import Draws, Event, Ledger, NullLedger, PrivacyError, PrivacyParameters, PrivacyWarning, Sampler
from privfit.rows import Rows
from privfit.schema import Geometry, Schema

Numbers = Literal["slope", "bins", "splines"]
"""How numbers without bins of their own enter the encoded rows."""
Problem = TypeVar("Problem")
PlanT = TypeVar("PlanT", bound="ReleasePlan")
Data = TypeVar("Data")
Value = TypeVar("Value")

SEEDED = "the noise comes from a source that is not secret, so that it can be repeated and subtracted"
USUAL_ROWS = 20_000
"""Stands for a private number of rows in rules that need one, without expected_rows; no guarantee depends on it."""
STREAM_ROWS = 10_000
"""Stands for the number of rows of a stream until it is read: a ledger is asked, and it is planned anew afterwards."""


@dataclass(frozen=True)
class PublicFacts:
    """All that a plan may depend on: how rows are encoded, the privacy parameters, and the number of rows as far as it
    is public.

    `n_rows` is None where it is private (add-remove) and nobody has given a guess. `counted` is False before a stream
    is read, whose number of rows will be public: then `n_rows` stands for it.
    """

    geometry: Geometry
    parameters: PrivacyParameters
    n_rows: int | None
    counted: bool = True

    @classmethod
    def before_reading(cls, rows: Rows, parameters: PrivacyParameters) -> PublicFacts:
        """What is public before a row is read."""
        if parameters.adjacency == "add-remove":
            return cls(rows.geometry, parameters, parameters.expected_rows)
        if (known := rows.slots if rows.leaves_out else rows.known_rows) is not None:
            return cls(rows.geometry, parameters, known)
        return cls(rows.geometry, parameters, parameters.expected_rows or STREAM_ROWS, counted=False)


@dataclass(frozen=True)
class ReleasePlan:
    """All that is decided before a row is read; `event` is all that will be drawn, and its price."""

    event: Event
    facts: PublicFacts
    warning: str = field(default="", kw_only=True)
    """What the user is warned of before the charge: from public facts, as the rest of the plan."""


@dataclass(frozen=True)
class Release(Generic[Value]):
    """A noisy value and the event that paid for it: all that a model is built from. `stated` is what was charged."""

    value: Value
    event: Event
    private: bool
    stated: Event | None = None


@dataclass(frozen=True)
class Description:
    """What was done to a release, as numbers and as sentences."""

    repairs: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Mechanism(ABC, Generic[Problem, PlanT, Data, Value]):
    """A way to release something about a table.

    Every mechanism has a Guarantee in its docstring, a proof note in docs/proofs and a brute-force test.
    """

    name: ClassVar[str]
    solves: ClassVar[str] = ""
    """The kind of problem that it takes, such as "erm": a model asks for mechanisms of the kinds that it can state."""
    numeric: ClassVar[Numbers] = "slope"
    """How numbers enter where nobody says."""
    chooses_encoding: ClassVar[bool] = False
    """Whether "auto" is settled by a rule that knows the number of rows and columns."""
    many_classes: ClassVar[bool] = False
    """Whether it fits more than two classes."""
    takes_interactions: ClassVar[bool] = False
    """Whether interaction terms can be added to its fit."""
    takes_weights: ClassVar[bool] = False
    """Whether rows can have weights."""
    weighs_intervals: ClassVar[bool] = False
    """Whether they can where intervals are asked for."""
    takes_splines: ClassVar[bool] = False
    """Whether numbers can enter least squares as splines."""

    def check(self) -> None:
        """Refuse parameters that have no meaning, before anything is read.

        Raises
        ------
        PrivacyError
            If a parameter has no meaning.
        """

    def reasons_not_private(self, problem: Problem) -> tuple[str, ...]:
        """Return why its releases are not private, if they are not, such as constants as a paper prints them.

        A ledger is then refused.

        Parameters
        ----------
        problem : object
            What is minimised, counted or selected.

        Returns
        -------
        tuple of str
            The reasons; empty where releases are private.
        """
        return ()

    def settle(self, problem: Problem) -> Problem:
        """Return the problem as this mechanism takes it: with a loss of its own, without what it cannot release.

        Parameters
        ----------
        problem : object
            What is minimised, counted or selected.

        Returns
        -------
        object
            The problem that is solved.
        """
        return problem

    def numbers(self, asked: str, default: Numbers) -> Numbers:
        """Return how numbers without bins of their own are encoded.

        Parameters
        ----------
        asked : str
            The estimator's `numeric`.
        default : {'slope', 'bins', 'splines'}
            The encoding that follows from it by the general rule.

        Returns
        -------
        {'slope', 'bins', 'splines'}
            The encoding.
        """
        return default

    def with_interactions(self, number: int | str) -> Self:
        """Return the same mechanism with so many interaction terms, if it takes them.

        Parameters
        ----------
        number : int or 'auto'
            Number of interaction terms.

        Returns
        -------
        Self
            The mechanism.
        """
        return self

    def for_rows_left_out(self, parameters: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        """Return parameters to plan with where rows may be left out, or refuse that: their number is private then.

        Parameters
        ----------
        parameters : PrivacyParameters
            What is promised.
        slots : int or None
            How many rows could be used, where that is public.

        Returns
        -------
        PrivacyParameters
            Parameters that imply what is promised.
        """
        return parameters.for_rows_left_out(slots)

    @abstractmethod
    def geometry(self, schema: Schema, problem: Problem, numeric: Numbers = "slope") -> Geometry:
        """Return how rows are encoded.

        Parameters
        ----------
        schema : Schema
            Public facts about the table.
        problem : object
            What is minimised, counted or selected.
        numeric : {'slope', 'bins', 'splines'}, default='slope'
            Encoding of numbers without bins of their own.

        Returns
        -------
        Geometry
            Blocks of columns, with their bounds and norms.
        """

    @abstractmethod
    def plan(self, facts: PublicFacts, problem: Problem) -> PlanT:
        """Plan what will be drawn and what it costs, from public facts alone.

        Parameters
        ----------
        facts : PublicFacts
            All that the plan may depend on.
        problem : object
            What is minimised, counted or selected.

        Returns
        -------
        ReleasePlan
            The plan; its event is all that will be drawn.
        """

    @abstractmethod
    def read(self, rows: Rows, plan: PlanT, problem: Problem, draws: Draws) -> Data:
        """Read the rows: exact sums, or a cached design.

        Refusals that depend on rows happen here, and nothing is charged.

        Parameters
        ----------
        rows : Rows
            The encoded rows.
        plan : ReleasePlan
            The plan.
        problem : object
            What is minimised, counted or selected.
        draws : Draws
            Of these only random bits can be had yet.

        Returns
        -------
        object
            What `draw` needs of the rows.
        """

    @abstractmethod
    def draw(self, data: Data, plan: PlanT, draws: Draws) -> Value:
        """Draw every part of the event, in order. Nothing here fails, warns or stops because of a row.

        Parameters
        ----------
        data : object
            What `read` returned.
        plan : ReleasePlan
            The plan.
        draws : Draws
            Hands out the parts of the event.

        Returns
        -------
        object
            The noisy value.
        """

    def solve(self, release: Release[Value], geometry: Geometry, problem: Problem) -> Any:
        """Compute what a model is made of: post-processing of the release.

        Parameters
        ----------
        release : Release
            The noisy value and its event.
        geometry : Geometry
            How rows were encoded.
        problem : object
            What is minimised, counted or selected.

        Returns
        -------
        object
            The fit.
        """
        return release.value

    def describe(self, fit: Any, schema: Schema, geometry: Geometry) -> Description:
        """Return what a report says about a fit, beside the event.

        Parameters
        ----------
        fit : object
            What `solve` returned.
        schema : Schema
            Public facts about the table.
        geometry : Geometry
            How rows were encoded.

        Returns
        -------
        Description
            Repairs and notes.
        """
        return Description()

    def relative_noise(self, fit: Any, event: Event, geometry: Geometry) -> float | None:
        """Return the size of the noise relative to the largest possible signal, where a rule is known.

        Parameters
        ----------
        fit : object
            What `solve` returned.
        event : Event
            What was drawn.
        geometry : Geometry
            How rows were encoded.

        Returns
        -------
        float or None
            The ratio; None where no rule is known.
        """
        return None

    @final
    def release(
        self, rows: Rows, parameters: PrivacyParameters, ledger: Ledger | None, sampler: Sampler, problem: Problem
    ) -> Release[Value]:
        """Plan, check the ledger, read, charge durably, draw: the only place where a ledger is charged.

        Parameters are checked first: a misspelt one must not mean something that nobody has proved.

        Parameters
        ----------
        rows : Rows
            The encoded rows.
        parameters : PrivacyParameters
            Budget, adjacency, rows per person and expected rows.
        ledger : Ledger or None
            The budget to charge.
        sampler : Sampler
            The source of randomness.
        problem : object
            What is minimised, counted or selected.

        Returns
        -------
        Release
            The noisy value and the event that paid for it.

        Raises
        ------
        PrivacyError
            If a parameter has no meaning, or a ledger is given and the release is not private. Nothing is charged.
        BudgetExceeded
            If the ledger has less left than the event costs. Nothing is charged and nothing is drawn.
        """
        self.check()
        account = NullLedger() if ledger is None else ledger
        reasons = self.reasons_not_private(problem)
        refuse_ledger(ledger, reasons if sampler.private else (SEEDED, *reasons))
        facts = PublicFacts.before_reading(rows, parameters)
        plan = self.plan(facts, problem)
        account.check(rows.stated(plan.event, parameters))
        draws = Draws(plan.event, sampler)
        data = self.read(rows, plan, problem, draws)
        if not facts.counted:
            plan = self.plan(replace(facts, n_rows=rows.n_rows, counted=True), problem)
            draws.switch(plan.event)
        if plan.warning:
            warnings.warn(plan.warning, PrivacyWarning, stacklevel=3)
        stated = rows.stated(plan.event, parameters)
        account.charge(stated, dataset=rows.label)
        with draws.charged():
            value = self.draw(data, plan, draws)
        return Release(value, plan.event, sampler.private and not reasons, stated)


AnyMechanism = Mechanism[Any, Any, Any, Any]


def refuse_ledger(ledger: Ledger | None, reasons: tuple[str, ...]) -> None:
    """A ledger takes private releases only: refuse one where there are reasons why a release is not, before anything is
    read.
    """
    if ledger is not None and reasons:
        raise PrivacyError(
            f"A ledger was given to a fit that is not private ({'; '.join(reasons)}). A ledger takes private fits "
            "only: mend what is named (leave out random_state or the seed of the noise, give a schema of public facts, "
            "use calibration='tight'), or leave out the ledger. Nothing was charged."
        )
