"""The document of a release: sections of plain text and tables, from plain values, before any markup."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Facts = Mapping[str, Any]
"""What is known of a release, as plain values: the entries are those that `release_facts` makes."""


@dataclass(frozen=True)
class Grid:
    """A table: a caption, the names of its columns, and its lines."""

    caption: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, a formula, points of a list, and a table."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    formula: str = ""
    points: tuple[str, ...] = ()
    grid: Grid | None = field(default=None)


def shown(value: object) -> str:
    """A value as text on one line; characters that control a terminal or the direction of text are written out."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(
        one.encode("unicode_escape").decode() if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") else one
        for one in text
    )


def _time(text: str) -> str:
    """A time of a ledger as people write it."""
    return text.replace("T", " ").replace("+00:00", " UTC")


def title(facts: Facts) -> str:
    """The title of the document."""
    return f"Privacy report of a release: {shown(facts['report']['model'])}"


def sections(facts: Facts) -> tuple[Section, ...]:
    """All sections, in the order in which a reader needs them."""
    return (
        _promise(facts["report"]),
        _release(facts),
        _estimates(facts),
        _public(facts),
        _spent(facts),
        _not_protected(facts["report"]),
        _checks(facts),
        _verify(facts),
        _questions(facts),
    )


def _unit(report: Facts) -> str:
    rows = int(report["rows_per_person"])
    return "one person's row" if rows == 1 else f"all rows of one person, at most {rows}"


def _promise(report: Facts) -> Section:
    heading = "What is promised to one person"
    if not report["private"]:
        why = tuple(map(shown, report["not_private_because"]))
        return Section(heading, ("This release is NOT private. No promise is made to anybody.",), points=why)
    epsilon, delta = float(report["epsilon"]), float(report["delta"])
    change = "replaced by any other" if report["adjacency"] == "replace-one" else "added or removed"
    factor = f"{math.exp(epsilon):.4g}" if epsilon < 700 else f"e^{epsilon:g}"
    words = (
        f"Had {_unit(report)} been {change}, the probability of every result would have differed by at most a factor "
        f"of {factor}" + (f", up to an additional probability of {delta:g}." if delta else ".")
    )
    formula = f"Pr[M(D) in S] ≤ exp({epsilon:g}) · Pr[M(D') in S] + {delta:g}"
    where = "This holds for every set S of results, and all tables D and D' that differ in this way."
    return Section(heading, (words, where), formula, tuple(map(shown, report["cautions"])))


def _release(facts: Facts) -> Section:
    report = facts["report"]
    lines = [
        ("Model", report["model"]),
        ("Mechanism", report["mechanism"]),
        ("Epsilon", report["epsilon"]),
        ("Delta", report["delta"]),
        ("Adjacency", report["adjacency"]),
        ("Rows per person, at most", report["rows_per_person"]),
        ("Noise", report["noise"]),
        ("Released values", report["released_values"]),
        ("Released by", facts.get("publisher") or "not stated"),
        ("Charged at", _time(facts["time"]) if facts.get("time") else "not known: no ledger was given"),
        ("Model saved by", facts.get("saved_by") or "not known: no model file was given"),
        ("Report written by", f"privfit {facts['version']}"),
    ]
    grid = Grid("The release", ("what", "value"), tuple((name, shown(value)) for name, value in lines))
    return Section("What was released", points=tuple(map(shown, report["notes"])), grid=grid)


def _estimates(facts: Facts) -> Section:
    heading, report, lines = "How accurate it is", facts["report"], facts.get("estimates") or ()
    words = []
    if report["noise_deviation"] is not None:
        words.append(f"Noise on one released value has standard deviation {report['noise_deviation']:.4g}.")
    words, points = [*words, _evaluated(facts.get("evaluation"))], _figures(facts.get("evaluation"))
    if not lines:
        return Section(heading, ("This document has no estimates with intervals.", *words), points=points)
    with_intervals = any(len(line) > 2 for line in lines)
    head = ("coefficient", "value", "90% from", "to") if with_intervals else ("coefficient", "value")
    about = (
        "Intervals are for the noise and the sampling of people; a coefficient that noise hides is not identified."
        if with_intervals
        else "This model has no intervals: the mechanism releases nothing that they can be computed from."
    )
    grid = Grid("Coefficients", head, tuple(tuple(map(shown, line)) for line in lines))
    words += _names_of_curves([line[0] for line in lines], [line[0] for line in facts.get("columns") or ()])
    return Section(heading, (about, *words), points=points, grid=grid)


def _names_of_curves(coefficients: Sequence[str], columns: Sequence[str]) -> list[str]:
    """What the names of coefficients say that are heights of a curve, by the first of them."""
    for name in coefficients:
        column, mark, point = name.rpartition("_at_")
        if mark and column in columns and name not in columns:
            told = f"{shown(name)} is the height of the curve of {shown(column)} at {shown(point)}"
            return [f"{told}; between two such points the curve is a straight line."]
    return []


def _evaluated(evaluation: Facts | None) -> str:
    """On what and at which price an evaluation was made."""
    if evaluation is None:
        return "No evaluation on private rows was given."
    report = evaluation["report"]
    if not report["private"]:
        return "Evaluated on private rows without noise that is secret. The figures are NOT private:"
    return f"Evaluated on private rows, with epsilon {report['epsilon']:g} and 90% intervals:"


def _figures(evaluation: Facts | None) -> tuple[str, ...]:
    figures = {} if evaluation is None else evaluation["figures"]
    return tuple(
        f"{shown(name)}: {_known(one['value'])} ({' to '.join(map(_known, one['interval']))})"
        for name, one in figures.items()
    )


def _known(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4g}"


def _checks(facts: Facts) -> Section:
    """What an audit found about this kind of model, as far as one was given."""
    heading, audit, model = "Checks that were run", facts.get("audit"), facts["report"]["model"]
    if audit is None:
        return Section(heading, ("No audit was given. privfit audit attacks the mechanisms of this version.",))
    findings = audit["findings"]
    own = [one for one in findings if one["mechanism"] == model]
    refuted = sum(one["verdict"] == "violated" for one in findings)
    words = (
        f"{len(findings)} attacks were made on mechanisms of privfit, {len(own)} of them on {shown(model)}. "
        f"{refuted or 'None'} refuted a claim. An attack that fails is evidence, and not a proof.",
        "Attacks use tables made from public facts, and read no private row.",
    )
    lines = tuple(
        (*map(shown, (one["attack"], one["setting"], one["runs"])), _known(one["found"]), shown(one["verdict"]))
        for one in own
    )
    grid = Grid(f"Attacks on {shown(model)}", ("attack", "setting", "runs", "found", "verdict"), lines)
    return Section(heading, words, grid=grid if lines else None)


def _public(facts: Facts) -> Section:
    points = tuple(map(shown, facts["report"]["public"]))
    columns = facts.get("columns") or ()
    lines = tuple(tuple(map(shown, line)) for line in columns)
    grid = Grid("The schema", ("column", "role", "public values"), lines) if lines else None
    words = "These facts were taken as public, and are not protected."
    return Section("What was taken as public", (words,), points=points, grid=grid)


def _spent(facts: Facts) -> Section:
    heading, ledger = "What else was spent on these people", facts.get("ledger")
    if not ledger:
        return Section(heading, ("No ledger was given. Other releases about these people are not known here.",))
    limit = "no limit" if math.isinf(ledger["epsilon"]) else f"epsilon {ledger['epsilon']:g}, delta {ledger['delta']:g}"
    words = [
        f"The whole budget is {limit}. {ledger['n_entries']} releases have spent epsilon {ledger['spent'][0]:.6g} and "
        f"delta {ledger['spent'][1]:.3g} of it.",
        "The whole budget is what is guaranteed for all of these releases together.",
    ]
    if ledger["mixed"]:
        words.append("Entries have different adjacencies or rows per person: prices do not add up to one guarantee.")
    lines = tuple(
        (shown(first), shown(_time(time)).removesuffix(" UTC"), *map(shown, rest))
        for first, time, *rest in ledger["entries"]
    )
    head = ("entry", "time (UTC)", "model", "epsilon", "delta")
    return Section(heading, tuple(words), grid=Grid("The newest entries", head, lines))


def _not_protected(report: Facts) -> Section:
    points = [
        "How long the fit took and how much memory it used.",
        "Errors before the charge: that a table was refused may depend on its rows.",
        "Facts taken as public: bounds, levels, names of columns, and the schema as a whole.",
        "What holds for people in general: a model may say something about a person who was never in the table.",
        "Releases that were not charged to the same ledger.",
    ]
    if report["adjacency"] == "replace-one":
        points.append("The number of rows, or of persons, which is public under replace-one.")
    if report["person_column"] is not True:
        points.append("A person with more rows than stated: the rows per person were taken on trust.")
    return Section("What is not protected", points=tuple(points))


def _verify(facts: Facts) -> Section:
    receipt, digest = facts["report"]["receipt"], facts.get("sha256")
    lines = [("SHA-256 of the model file", digest)] if digest else []
    lines += [(f"Receipt: {name}", value) for name, value in receipt.items()]
    if facts.get("ledger"):
        lines.append(("Receipt found in the ledger", facts["ledger"]["receipt"]))
    words = (
        "Compare the digest with that of the file (sha256sum model.json). Whoever has the ledger compares the receipt: "
        "privfit ledger verify people.db --against model.json."
    )
    if not lines:
        return Section("How to verify this", ("Neither a model file nor a receipt of a ledger is known here.",))
    cells = tuple((shown(name), shown(value)) for name, value in lines)
    return Section("How to verify this", (words,), grid=Grid("Evidence", ("what", "value"), cells))


def _questions(facts: Facts) -> Section:
    report = facts["report"]
    known = "a ledger; see above" if facts.get("ledger") or report["receipt"] else "not recorded in a ledger"
    enforced = "a person column" if report["person_column"] else "trust in the stated rows per person"
    lines = (
        ("What is the unit of privacy?", f"A person: {_unit(report)}. It rests on {enforced}."),
        ("Which definition, with which parameters?", _definition(report)),
        ("Which tables are neighbours?", report["adjacency"]),
        ("Whom must people trust?", "The central model: the curator holds the rows, and privfit runs where they are."),
        ("Which mechanism and noise?", f"{report['mechanism']}, {report['noise']}"),
        ("How do several releases add up?", f"By composition; this release: {known}."),
        ("How is accuracy stated?", "By the noise above, and by intervals where the model has them."),
        ("Is access to rows controlled?", "Not by this release. The owner of the table must see to it."),
    )
    cells = tuple((shown(name), shown(value)) for name, value in lines)
    words = "Questions for the evaluation of a guarantee, after NIST SP 800-226, in our own words."
    return Section("Questions of an evaluation", (words,), grid=Grid("Answers", ("question", "answer"), cells))


def _definition(report: Facts) -> str:
    if not report["private"]:
        return "None: this release is not private."
    kind = "Pure differential privacy" if not report["delta"] else "Approximate differential privacy"
    return f"{kind}, epsilon {report['epsilon']:g}, delta {report['delta']:g}."
