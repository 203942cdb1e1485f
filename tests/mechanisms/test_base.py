"""The order of a release, tried with a toy mechanism: plan, check, read, charge, draw."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privfit as pf
from privfit.mechanisms.base import STREAM_ROWS, Mechanism, Numbers, PublicFacts, Release, ReleasePlan, refuse_ledger
from privfit.privacy import Budget, Draws, Event, NullLedger, PrivacyParameters, SecureNoise, SeededNoise
from privfit.privacy.parts import Laplace, RandomBits
from privfit.rows import PlainRows, Rows
from privfit.schema import Geometry, Schema
from privfit.tables import open_table

SCHEMA = pf.Schema([pf.Numeric("x", 0, 1)])
GRAIN = 1000
"""The integer that stands for 1."""
VALUES = np.linspace(0, 1, 11)[:, None]


@dataclass
class Mean(Mechanism[None, ReleasePlan, np.ndarray, float]):
    """A private mean of one column, which writes down what it was asked."""

    steps: list[tuple] = field(default_factory=list)
    reasons: tuple[str, ...] = ()
    fails_in: str = ""
    bits: bool = False
    draws_twice: bool = False
    forgets: bool = False
    warns: str = ""

    name = "mean"

    def _note(self, step: str, *facts: Any) -> None:
        self.steps.append((step, *facts))
        if self.fails_in == step:
            raise pf.DataError(f"stopped in {step}")

    def reasons_not_private(self, problem: None) -> tuple[str, ...]:
        return self.reasons

    def geometry(self, schema: Schema, problem: None, numeric: Numbers = "slope") -> Geometry:
        return schema.geometry(intercept=False, target=False)

    def plan(self, facts: PublicFacts, problem: None) -> ReleasePlan:
        self._note("plan", facts.n_rows, facts.counted)
        event = Event.laplace(
            self.name, facts.parameters.budget, sensitivity=GRAIN, adjacency=facts.parameters.adjacency, unit=GRAIN
        )
        parts = (RandomBits(), *event.parts) if self.bits else event.parts
        planned = Event(self.name, event.epsilon, adjacency=event.adjacency, parts=parts)
        return ReleasePlan(planned, facts, warning=f"{self.warns} {facts.n_rows}" if self.warns else "")

    def read(self, rows: Rows, plan: ReleasePlan, problem: None, draws: Draws) -> np.ndarray:
        self._note("read")
        if self.bits:
            draws.random_bits()
        plain = PlainRows(rows)
        plain.read()
        return plain.sum(lambda table: np.rint(GRAIN * table[:, :1]).astype(np.int64))

    def draw(self, data: np.ndarray, plan: ReleasePlan, draws: Draws) -> float:
        self._note("draw", plan.facts.n_rows)
        if self.forgets:
            return 0.0
        total = draws.add(data)[0]
        if self.draws_twice:
            draws.add(data)
        return float(total / GRAIN / (plan.facts.n_rows or 1))


class RecordingLedger(pf.Ledger):
    """A ledger that writes into the same list as the mechanism."""

    def __init__(self, steps: list[tuple], **limits: float) -> None:
        super().__init__(**limits)
        self.steps = steps

    def check(self, event: Event) -> None:
        self.steps.append(("check", event))
        super().check(event)

    def charge(self, event: Any, **facts: Any) -> Any:
        self.steps.append(("charge", event))
        return super().charge(event, **facts)


class Recording(SecureNoise):
    def __init__(self, steps: list[tuple]) -> None:
        self.steps = steps

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        self.steps.append(("noise", values.tolist(), scale))
        return super().laplace(values, scale)


def table_of(values: np.ndarray = VALUES, stream: bool = False) -> Any:
    if not stream:
        return open_table(values)
    batch = pa.record_batch({"x": values[:, 0]})
    return open_table(pa.RecordBatchReader.from_batches(batch.schema, [batch]))


def released(mechanism: Mean, ledger: Any = None, sampler: Any = None, epsilon: float = 0.5, **facts: Any) -> Release:
    rows = Rows(
        table_of(facts.pop("values", VALUES), facts.pop("stream", False)), SCHEMA, mechanism.geometry(SCHEMA, None)
    )
    return mechanism.release(rows, PrivacyParameters(Budget(epsilon), **facts), ledger, sampler or SecureNoise(), None)


def recorded(mechanism: Mean, **facts: Any) -> tuple[Release, pf.Ledger]:
    ledger = RecordingLedger(mechanism.steps, epsilon=1.0)
    return released(mechanism, ledger, Recording(mechanism.steps), **facts), ledger


def names(mechanism: Mean) -> list[str]:
    return [step[0] for step in mechanism.steps]


def test_the_order_is_plan_check_read_charge_draw() -> None:
    mechanism = Mean()
    release, ledger = recorded(mechanism)
    assert names(mechanism) == ["plan", "check", "read", "charge", "draw", "noise"]
    checked, charged = (step[1] for step in mechanism.steps if step[0] in ("check", "charge"))
    assert checked == charged == release.event == ledger.entries()[0].event
    assert release.private
    assert mechanism.steps[-1] == ("noise", [5500], 2000.0)
    assert ledger.spent.epsilon == 0.5


def test_the_mean_is_a_mean() -> None:
    assert released(Mean(), epsilon=1e6).value == pytest.approx(0.5, abs=1e-3)


def test_a_counted_table_is_planned_once_with_its_rows() -> None:
    mechanism = Mean()
    released(mechanism)
    assert [step for step in mechanism.steps if step[0] == "plan"] == [("plan", 11, True)]
    assert mechanism.steps[-1] == ("draw", 11)


@pytest.mark.parametrize("expected", [None, 40])
def test_a_stream_is_planned_again_once_its_rows_are_counted(expected: int | None) -> None:
    mechanism = Mean()
    release, ledger = recorded(mechanism, stream=True, expected_rows=expected)
    assert names(mechanism) == ["plan", "check", "read", "plan", "charge", "draw", "noise"]
    plans = [step for step in mechanism.steps if step[0] == "plan"]
    assert plans == [("plan", expected or STREAM_ROWS, False), ("plan", 11, True)]
    assert ("draw", 11) in mechanism.steps
    assert ledger.entries()[0].event == release.event


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("expected", [None, 40])
def test_private_numbers_of_rows_are_in_no_plan(stream: bool, expected: int | None) -> None:
    mechanism = Mean()
    released(mechanism, stream=stream, adjacency="add-remove", expected_rows=expected)
    assert [step for step in mechanism.steps if step[0] == "plan"] == [("plan", expected, True)]
    assert mechanism.steps[-1] == ("draw", expected)


@pytest.mark.parametrize("stream", [False, True])
def test_random_bits_taken_while_reading_are_not_taken_again(stream: bool) -> None:
    release = released(Mean(bits=True), stream=stream)
    assert isinstance(release.event.parts[0], RandomBits)
    assert isinstance(release.event.parts[1], Laplace)


@pytest.mark.parametrize("step", ["plan", "read"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_before_the_charge_charges_nothing(step: str, stream: bool) -> None:
    mechanism = Mean(fails_in=step)
    ledger = RecordingLedger(mechanism.steps, epsilon=1.0)
    with pytest.raises(pf.DataError, match=f"stopped in {step}"):
        released(mechanism, ledger, Recording(mechanism.steps), stream=stream)
    assert {"charge", "draw", "noise"}.isdisjoint(names(mechanism))
    assert ledger.entries() == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_plan_warns_before_the_charge_of_what_it_was_made_for_in_the_end(stream: bool) -> None:
    mechanism = Mean(warns="planned for")
    ledger = RecordingLedger(mechanism.steps, epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pf.PrivacyWarning)
        with pytest.raises(pf.PrivacyWarning, match=r"^planned for 11$"):
            released(mechanism, ledger, Recording(mechanism.steps), stream=stream)
    assert {"charge", "draw", "noise"}.isdisjoint(names(mechanism))
    assert ledger.entries() == []


def test_nobody_is_warned_between_the_charge_and_the_release() -> None:
    class Murmuring(Mean):
        def draw(self, data: np.ndarray, plan: ReleasePlan, draws: Draws) -> float:
            warnings.warn("steep", RuntimeWarning, stacklevel=1)
            return super().draw(data, plan, draws)

    mechanism = Murmuring()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released(mechanism)
        with pytest.raises(RuntimeWarning):
            warnings.warn("afterwards", RuntimeWarning, stacklevel=1)
    assert "draw" in names(mechanism)


@pytest.mark.parametrize("values", [np.full((3, 1), np.nan), np.zeros((0, 1))], ids=["nan", "empty"])
def test_bad_rows_charge_nothing(values: np.ndarray) -> None:
    mechanism = Mean()
    ledger = RecordingLedger(mechanism.steps, epsilon=1.0)
    with pytest.raises(pf.DataError):
        released(mechanism, ledger, values=values)
    assert ledger.entries() == []
    assert "draw" not in names(mechanism)


def test_an_error_after_the_charge_keeps_it() -> None:
    mechanism = Mean(fails_in="draw")
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.DataError, match="stopped in draw"):
        released(mechanism, ledger)
    assert ledger.spent.epsilon == 0.5


def test_a_budget_that_does_not_suffice_is_refused_before_rows_are_read() -> None:
    mechanism = Mean()
    ledger = RecordingLedger(mechanism.steps, epsilon=0.4)
    with pytest.raises(pf.BudgetExceeded):
        released(mechanism, ledger, Recording(mechanism.steps))
    assert names(mechanism) == ["plan", "check"]


def test_a_budget_spent_by_somebody_else_while_rows_are_read_is_refused_before_a_draw() -> None:
    class Raced(Mean):
        def read(self, rows: Rows, plan: ReleasePlan, problem: None, draws: Draws) -> np.ndarray:
            ledger.charge(0.4)
            return super().read(rows, plan, problem, draws)

    mechanism, ledger = Raced(), pf.Ledger(epsilon=0.8)
    with pytest.raises(pf.BudgetExceeded):
        released(mechanism, ledger, Recording(mechanism.steps))
    assert {"draw", "noise"}.isdisjoint(names(mechanism))
    assert ledger.spent.epsilon == 0.4


def test_what_a_read_draws_early_is_refused_and_charges_nothing() -> None:
    class Hasty(Mean):
        def read(self, rows: Rows, plan: ReleasePlan, problem: None, draws: Draws) -> np.ndarray:
            return draws.add(super().read(rows, plan, problem, draws))

    mechanism, ledger = Hasty(), pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match="Charge the ledger first"):
        released(mechanism, ledger, Recording(mechanism.steps))
    assert "noise" not in names(mechanism)
    assert ledger.entries() == []


@pytest.mark.parametrize("fault", ["draws_twice", "forgets"])
def test_a_mechanism_that_draws_something_else_than_its_event_says_is_found_out(fault: str) -> None:
    with pytest.raises(pf.PrivacyError, match="describes every draw, in order"):
        released(Mean(**{fault: True}))


def test_seeded_noise_with_a_ledger_is_refused_before_anything() -> None:
    mechanism, ledger = Mean(), pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match=r"not secret.*Nothing was charged"):
        released(mechanism, ledger, SeededNoise(0))
    assert mechanism.steps == []
    assert ledger.entries() == []
    assert not released(mechanism, None, SeededNoise(0)).private


def test_a_mechanism_used_directly_refuses_parameters_without_a_meaning() -> None:
    ledger, parameters = pf.Ledger(epsilon=1.0), PrivacyParameters(Budget(0.5))
    mechanism = pf.SampleAndAggregate(blocks=2, dealing="Equal")  # type: ignore[arg-type]
    rows = Rows(open_table(VALUES), SCHEMA, SCHEMA.geometry(intercept=False, target=False))
    with pytest.raises(pf.PrivacyError, match="dealing='Equal'"):
        mechanism.release(rows, parameters, ledger, SecureNoise(), None)  # type: ignore[arg-type]
    assert ledger.n_entries == 0


def test_a_mechanism_with_reasons_is_not_private_and_refuses_a_ledger() -> None:
    mechanism, ledger = Mean(reasons=("its constants are as printed",)), pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match="as printed"):
        released(mechanism, ledger)
    assert mechanism.steps == []
    assert not released(mechanism).private


def test_without_a_ledger_nothing_is_kept() -> None:
    release = released(Mean())
    assert release.private
    NullLedger().check(release.event)
    assert NullLedger().charge(release.event, dataset="x") is None


def test_the_same_seed_gives_the_same_release() -> None:
    one, other = (released(Mean(), None, SeededNoise(3)) for _ in range(2))
    assert one.value == other.value
    assert one.event == other.event


def test_solve_hands_on_what_was_released() -> None:
    mechanism = Mean()
    release = released(mechanism)
    assert mechanism.solve(release, mechanism.geometry(SCHEMA, None), None) == release.value


def test_a_mechanism_that_leaves_a_step_out_cannot_be_made() -> None:
    class Unfinished(Mechanism):
        name = "unfinished"

    with pytest.raises(TypeError, match="abstract"):
        Unfinished()


def test_a_ledger_is_refused_for_reasons_only() -> None:
    refuse_ledger(None, ("a reason",))
    refuse_ledger(pf.Ledger(epsilon=1.0), ())
    with pytest.raises(pf.PrivacyError, match="a reason"):
        refuse_ledger(pf.Ledger(epsilon=1.0), ("a reason",))
