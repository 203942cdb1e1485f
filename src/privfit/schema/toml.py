"""Schemas as TOML text: what `Schema.save` writes and `Schema.load` reads."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privfit.schema.columns import Category, Column, Numeric
from privfit.schema.errors import SchemaError
from privfit.schema.filters import Condition


@dataclass(frozen=True)
class Parsed:
    """What TOML text says of a schema."""

    features: list[Column]
    target: Column | None
    box: tuple[float, float] | None
    person: str | None = None
    where: dict[str, object] | None = None


LARGEST = 1 << 63
"""What integers of TOML are below."""
_KNOWN = {"feature", "target", "box", "person", "where"}

_NUMERIC_FIELDS = {"name", "type", "low", "high", "bins", "fill"}
_CATEGORY_FIELDS = {"name", "type", "levels", "other", "fill"}


def load(path: Path) -> Parsed:
    """What a TOML file says."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(
            f"The schema file {path.name!r} cannot be read: {type(error).__name__}. "
            "Give the path of a TOML file; `privfit schema FILE` drafts one."
        ) from error
    return parse(text, path.name)


def parse(text: str, where: str) -> Parsed:
    """What TOML text says; `where` names the text in errors."""
    document = _document(text, where)
    unknown = sorted(set(document) - _KNOWN)
    if unknown:
        raise SchemaError(
            f"The schema in {where} has {unknown}, which privfit does not know. Use person, [[feature]], "
            "[target], [where] or [box]."
        )
    features = document.get("feature", [])
    if not isinstance(features, list) or not all(isinstance(feature, dict) for feature in features):
        raise SchemaError(
            f"The schema in {where} has a [feature] table; features are a list. Write [[feature]] with two brackets."
        )
    columns = [_column(feature, where) for feature in features]
    target = _column(document["target"], where) if "target" in document else None
    if "box" in document:
        left_out = sorted({"person", "where"} & set(document))
        if left_out:
            raise SchemaError(
                f"The schema in {where} has a [box] and {left_out}; columns of a box have no names. List columns as "
                "[[feature]]."
            )
        return Parsed(columns, target, _box(document["box"], columns, where))
    return Parsed(columns, target, None, document.get("person"), document.get("where"))


def _document(text: str, where: str) -> dict[str, Any]:
    """The TOML of a text, with integers that TOML allows: of 64 bits."""
    try:
        document = tomllib.loads(text)
        if _has_huge(document):
            raise ValueError("an integer has more than 64 bits")
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is one; so are integers of too many digits
        raise SchemaError(
            f"The schema in {where} is not valid TOML: {error}. Mend that line, or draft a new one with "
            "`privfit schema`."
        ) from error
    return document


def _has_huge(value: object) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_huge, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and not -LARGEST <= value < LARGEST


def _box(entry: object, columns: list[Column], where: str) -> tuple[float, float]:
    if not isinstance(entry, dict) or set(entry) != {"low", "high"}:
        raise SchemaError(
            f"The schema in {where} has a [box] that is not two bounds. Write [box] with low = -1.0 and high = 1.0 "
            "under it."
        )
    if columns:
        raise SchemaError(
            f"The schema in {where} has a [box] and [[feature]] columns; a box stands for all columns. Keep the one or "
            "the others."
        )
    return entry["low"], entry["high"]


def _column(entry: object, where: str) -> Column:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(name, str):
        raise SchemaError(f'A column in {where} has no name. Write name = "age" as its first line.')
    kind = entry.get("type")
    fields = {"numeric": _NUMERIC_FIELDS, "category": _CATEGORY_FIELDS}.get(str(kind))
    if fields is None:
        raise SchemaError(
            f'Column {name!r} in {where} has type {kind!r}; a type is "numeric" or "category". Write one of them.'
        )
    unknown = sorted(set(entry) - fields)
    if unknown:
        raise SchemaError(
            f"Column {name!r} in {where} has {unknown}, which a {kind} column does not know. It knows {sorted(fields)}."
        )
    if kind == "numeric":
        bounds = {bound: entry[bound] for bound in ("low", "high") if bound in entry}
        return Numeric(name, **bounds, bins=entry.get("bins"), fill=entry.get("fill"))
    return Category(name, entry.get("levels", ()), other=entry.get("other", False), fill=entry.get("fill"))


def dump(
    features: Sequence[Column],
    target: Column | None,
    box: tuple[float, float] | None,
    person: str | None = None,
    where: Sequence[Condition] = (),
) -> str:
    """TOML text for these columns."""
    parts = [] if person is None else [f"person = {value_text(person)}\n"]
    if where:
        parts.append("[where]\n" + "".join(map(_condition_text, where)))
    if box is not None:
        parts.append(f"[box]\nlow = {box[0]!r}\nhigh = {box[1]!r}\n")
    if target is not None:
        parts.append("[target]\n" + _entry(target))
    parts.extend("[[feature]]\n" + _entry(column) for column in features)
    return "\n".join(parts)


def _entry(column: Column) -> str:
    if isinstance(column, Numeric):
        facts = {
            "name": column.name,
            "type": "numeric",
            "low": column.low,
            "high": column.high,
            "bins": column.bins,
            "fill": column.fill,
        }
    else:
        facts = {"name": column.name, "type": "category", "levels": column.levels, "fill": column.fill}
    return "".join(f"{key} = {value_text(value)}\n" for key, value in facts.items() if value is not None)


def _condition_text(condition: Condition) -> str:
    bounds = (("low", condition.low), ("high", condition.high))
    written = ", ".join(f"{end} = {value_text(bound)}" for end, bound in bounds if bound is not None)
    asked = value_text(condition.levels) if condition.levels else f"{{ {written} }}"
    return f"{value_text(condition.name)} = {asked}\n"


def value_text(value: object) -> str:
    """One TOML value: a text, a number, a truth value or a list of them."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(value_text(item) for item in value) + "]"
    return repr(value)
