"""What the report of a release says: from its event and from public facts alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from privfit.mechanisms.base import Description
from privfit.models.report import JSONObject, Report
from privfit.privacy import Amount, Event, Ledger
from privfit.schema import Category, Column, Numeric, Schema

if TYPE_CHECKING:
    from privfit.models.private import AnyModel, FitResult

WEAK_EPSILON = 10.0
"""Above this, a report calls the guarantee weak: e^10 is a factor of 22,000 on a probability. A larger limit would call
more fits private without a qualification; a smaller one would qualify fits for which delta and composition matter more.
A convention, not measured."""


def report_of_fit(
    model: AnyModel,
    result: FitResult[Any, Any, Any],
    described: Description,
    public: tuple[str, ...],
    reasons: tuple[str, ...],
    public_rows: int | None,
    ledger: Ledger | None,
) -> Report:
    """The report of a fit, which `reasons` say is not private, if it is not."""
    event, schema = result.released.stated or result.released.event, model.schema_
    if not result.released.private and not reasons:
        reasons = ("the noise came from a source that is not secret",)
    receipt = ledger.last_receipt if ledger is not None and model.ledger is not None else None
    unlimited = ledger.spent if ledger is not None and model.ledger is None else None
    notes = list(described.notes)
    if schema.leaves_out:
        notes.append(left_out_note(schema, event))
    if (most := getattr(result.problem, "max_weight", None)) is not None:
        notes.append(f"weights of rows count up to {most:g}; they and their sum are private")
    if schema.target is not None and schema.target.fill is not None and not schema.target.drops:
        notes.append(filled_target_note(schema.target))
    if model.delta and not event.delta:
        notes.append("delta was not spent: this noise needs epsilon alone")
    return make_report(
        type(model).__name__,
        event,
        Description(described.repairs, tuple(notes)),
        public=public,
        reasons=reasons,
        receipt={} if receipt is None else asdict(receipt),
        public_rows=public_rows,
        spent_without_ledger=unlimited,
        enforced=schema.person is not None,
    )


def make_report(
    model: str,
    event: Event,
    described: Description,
    *,
    public: tuple[str, ...],
    reasons: tuple[str, ...] = (),
    receipt: JSONObject | None = None,
    public_rows: int | None = None,
    spent_without_ledger: Amount | None = None,
    enforced: bool | None = None,
) -> Report:
    """The report of a release with this event; `reasons` say why it is not private, if it is not.

    `public_rows` is the number of rows as far as it is public: the true one under replace-one, a guess or None under
    add-remove. `spent_without_ledger` is what the process has spent without one, where this release was given none.
    `enforced` is whether a person column made sure of the rows per person. All of it, cautions included, follows from
    public facts, so that reports of neighbouring tables are the same.
    """
    noise, cautions = event.summary, []
    if event.epsilon > WEAK_EPSILON:
        cautions.append(
            f"epsilon {event.epsilon:g} is above {WEAK_EPSILON:g}: such a guarantee is weak, "
            f"because one person may change a probability by a factor of e^{event.epsilon:g}"
        )
    if public_rows is not None and event.delta * public_rows > 1:
        cautions.append(_of_large_delta(event, public_rows))
    if spent_without_ledger is not None:
        cautions.append(
            "no ledger was given: this fit was not charged to a lasting budget; "
            f"fits without a ledger have spent epsilon {spent_without_ledger!r} in this process so far"
        )
    return Report(
        model=model,
        mechanism=event.mechanism,
        epsilon=event.epsilon,
        delta=event.delta,
        adjacency=event.adjacency,
        rows_per_person=event.rows_per_person,
        sensitivity=noise.sensitivity / noise.unit,
        noise_scale=noise.scale / noise.unit,
        noise=noise.in_words,
        released_values=noise.n_values,
        repairs=dict(described.repairs),
        public=public,
        private=not reasons,
        not_private_because=reasons,
        notes=described.notes,
        event=event.to_dict(),
        noise_deviation=noise.usual_sd,
        receipt=receipt or {},
        person_column=enforced,
        cautions=() if reasons else tuple(cautions),
    )


# -- what qualifies a guarantee --------------------------------------------------------------------


def _of_large_delta(event: Event, public_rows: int) -> str:
    """A delta above one over the number of rows.

    A mechanism that publishes one row, drawn at random, exposes a person with m of n rows with probability m / n. So it
    is (0, m / n)-DP.
    """
    allows_a_row = event.delta * public_rows >= event.rows_per_person
    meaning = (
        "publishing one row at random, as it is, would satisfy it too"
        if allows_a_row
        else "so large a probability of failure protects nobody in particular"
    )
    return f"delta {event.delta:g} is above 1 / {public_rows:,}, one over the number of rows: {meaning}"


def large_delta(delta: float, n_rows: int) -> str:
    """The warning of a delta above one over the number of rows."""
    return (
        f"delta={delta:g} is more than one in {n_rows} rows: so large a probability of failure protects nobody in "
        "particular. Use a delta far below one over the number of rows, such as 1e-6."
    )


def filled_target_note(target: Column) -> str:
    """A note for a schema with a value for missing targets. It depends on the schema alone."""
    if isinstance(target, Category):
        return (
            f"missing targets are taken as the level {target.fill!r}: that changes what is estimated, "
            "unless the level stands for targets that are missing"
        )
    value = f"{target.fill:g}" if isinstance(target.fill, float) else repr(target.fill)
    return f"missing targets are taken as {value}: that changes what is estimated"


def public_facts(schema: Schema, adjacency: str) -> tuple[str, ...]:
    """What a fit takes as public."""
    numeric = sum(isinstance(column, Numeric) for column in schema.features)
    categories = len(schema.features) - numeric
    facts = [f"bounds of {numeric} numeric column{'s' * (numeric != 1)}"] if numeric else []
    if categories:
        facts.append(f"levels of {categories} categor{'ies' if categories != 1 else 'y'}")
    if schema.target is not None:
        facts.append("classes of the target" if isinstance(schema.target, Category) else "bounds of the target")
    if schema.where:
        facts.append(f"the filter on {', '.join(repr(condition.name) for condition in schema.where)}")
    if adjacency == "replace-one":
        facts.append(public_number(schema))
    return tuple(facts)


def public_number(schema: Schema) -> str:
    """Which number is public under replace-one."""
    if schema.person is not None:
        return "the number of persons"
    return "the number of rows, those left out included" if schema.leaves_out else "the number of rows"


def left_out_note(schema: Schema, event: Event) -> str:
    """A note for a schema that leaves rows out. It depends on public facts alone."""
    rows = []
    if schema.where:
        rows.append("rows that do not meet the filter")
    if schema.target is not None and schema.drops_target:
        rows.append(f"rows without a value of {schema.target.name!r}")
    if schema.person is not None:
        rows.append(f"rows beyond {event.rows_per_person} of a person, chosen at random")
    about = "; the fit is about people whose target is known" if schema.drops_target else ""
    return f"absent are {', and '.join(rows)}: how many rows were used is private{about}"
