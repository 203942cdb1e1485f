"""The schema: everything that is public about a table, and all that calibration may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import ClassVar

from privfit.report.notebook import fragment, table
from privfit.schema import toml
from privfit.schema.columns import Category, Column, Level, Numeric
from privfit.schema.derived import box_target, check_names, checked_person, rebounded
from privfit.schema.described import MOST_LEVELS, described
from privfit.schema.errors import SchemaError, shown
from privfit.schema.filters import Condition, conditions
from privfit.schema.geometry import geometry_of


class Schema:
    """Public knowledge about a table: its columns with their bounds and levels, and which one is the target.

    Parameters
    ----------
    features : iterable of Numeric and Category
        The columns that a model may use.
    target : Numeric, Category or None, default=None
        The column to predict.
    person : str or None, default=None
        The name of the column that says whose row it is: of each person at most the estimator's `rows_per_person` rows
        are used, chosen at random. None takes it on trust that nobody has more. Identifiers are never kept or printed.
    where : mapping or None, default=None
        Which rows are used, by name of column: (low, high) for a number, both included and None for no bound, or a list
        of levels. All conditions hold for a row that is used; a missing value meets none. Other rows count as absent.

    See Also
    --------
    Numeric : A column with public bounds.
    Category : A column with public levels.

    Examples
    --------
    >>> import privfit as pf
    >>> features = [pf.Numeric("age", 17, 90), pf.Category("sex", ["Female", "Male"])]
    >>> pf.Schema(features, target=pf.Numeric("income", 0, 200_000))
    Schema(2 features, target 'income')
    >>> pf.Schema(features, person="patient_id", where={"age": (18, None)})
    Schema(2 features, person 'patient_id', where age)
    """

    _read_public: ClassVar[Callable[..., Schema] | None] = None
    columns: tuple[Column, ...]
    """All columns, the target last."""
    any_width: bool
    """Whether the number of features is still open, as in Schema.box(low, high)."""
    drops_target: bool
    """Whether rows without a target are left out."""
    leaves_out: bool
    """Whether rows may be left out, so that the number of rows used is private."""

    def __init__(
        self,
        features: Iterable[Column],
        target: Column | None = None,
        person: str | None = None,
        where: Mapping[str, object] | tuple[Condition, ...] | None = None,
    ) -> None:
        if not isinstance(features, Iterable):
            raise SchemaError(
                f"A schema was given features of type {type(features).__name__}; features are a list of columns. "
                "Write, for example, Schema([Numeric('age', 0, 120)])."
            )
        self.features: tuple[Column, ...] = tuple(features)
        self._box: tuple[float, float] | None = None
        self.person, self.where = checked_person(person), conditions(where)
        self._set_target(target)
        for column in (*self.features, *([target] if target is not None else [])):
            if not isinstance(column, Numeric | Category):
                raise SchemaError(
                    f"A schema was given a column of type {type(column).__name__}; columns are Numeric or Category. "
                    "Write, for example, Schema([Numeric('age', 0, 120)], target=Category('ill', ['no', 'yes']))."
                )
        if not self.features:
            raise SchemaError(
                "A schema was given no feature columns, and there is nothing to fit. List at least one feature."
            )
        check_names(self.features, self.columns, self.person)

    @classmethod
    def box(
        cls,
        low: float = -1.0,
        high: float = 1.0,
        n_features: int | None = None,
        target: Column | tuple[float, float] | Sequence[Level] | None = None,
    ) -> Schema:
        """Make a schema for plain arrays: the same public bounds for every column.

        Parameters
        ----------
        low : float, default=-1.0
            Public lower bound of every column.
        high : float, default=1.0
            Public upper bound of every column.
        n_features : int or None, default=None
            Number of columns. None takes the width of whatever table is fitted. Columns are then known by position and
            called x0, x1, ...: their own names are not listed here, so that they are not public, and nothing that is
            fitted keeps them.
        target : Numeric, Category, tuple of float, sequence of classes or None, default=None
            The target: a column, a pair (low, high) for a number, or a list of classes.

        Returns
        -------
        Schema
            The schema.
        """
        Numeric("x", low, high)  # checks the bounds
        width = 1 if n_features is None else n_features
        if not isinstance(width, Integral) or isinstance(width, bool) or width < 1:
            raise SchemaError(
                f"Schema.box was given n_features={shown(n_features)}; it is an integer of at least 1. Leave it out "
                "for any width."
            )
        schema = cls([Numeric(f"x{i}", low, high) for i in range(int(width))], box_target(target))
        if n_features is None:
            schema.features, schema._box = (), (float(low), float(high))
            schema._set_target(schema.target)
        return schema

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file, as `save` writes it.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Schema
            The schema.

        Raises
        ------
        SchemaError
            If the file does not describe a schema.
        """
        return cls._parsed(toml.load(Path(path)))

    def save(self, path: str | Path) -> None:
        """Write the schema to a TOML file.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def to_toml(self) -> str:
        """Return the schema as TOML text.

        Returns
        -------
        str
            The text.
        """
        return toml.dump(self.features, self.target, self._box, self.person, self.where)

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Make the schema that `to_toml` wrote.

        Parameters
        ----------
        text : str
            TOML text.

        Returns
        -------
        Schema
            The schema.

        Raises
        ------
        SchemaError
            If the text does not describe a schema.
        """
        return cls._parsed(toml.parse(text, "the text"))

    @classmethod
    def _parsed(cls, parsed: toml.Parsed) -> Schema:
        if parsed.box is None:
            return cls(parsed.features, parsed.target, parsed.person, parsed.where)
        return cls.box(*parsed.box, target=parsed.target)

    @classmethod
    def from_public(cls, table: object, target: str | None = None) -> Schema:
        """Draft a schema from a table that is itself public: bounds and levels are read from its rows.

        Never call this on a private table: the bounds of a column are the values of two people.

        Parameters
        ----------
        table : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            A public table.
        target : str or None, default=None
            Name of the column to predict.

        Returns
        -------
        Schema
            The draft.
        """
        if cls._read_public is None:
            raise SchemaError(
                "No table reader is loaded. Import privfit itself: import privfit as pf; pf.Schema.from_public(table)."
            )
        return cls._read_public(table, target)

    def _set_target(self, target: Column | None) -> None:
        """Keep the target, and what follows from it and from features and box."""
        self.target = target
        self.columns = self.features if target is None else (*self.features, target)
        self.any_width = self._box is not None
        self.drops_target = getattr(target, "drops", False)
        self.leaves_out = self.drops_target or self.person is not None or bool(self.where)

    def with_features(self, names: Sequence[str]) -> Schema:
        """Return this schema with its open width settled: one column of the box per name.

        Parameters
        ----------
        names : sequence of str
            Names of the columns.

        Returns
        -------
        Schema
            The settled schema.
        """
        if self._box is None:
            return self
        low, high = self._box
        return Schema([Numeric(name, low, high) for name in names], self.target, self.person, self.where)

    def of_used_rows(self) -> Schema:
        """Return this schema as it describes the rows that are used: nothing is left to leave out.

        Returns
        -------
        Schema
            The schema without person and filter, and without a fill of the target that drops rows.
        """
        if not self.leaves_out:
            return self
        target = self.target
        return Schema(self.features, replace(target, fill=None) if target and self.drops_target else target)

    def with_target(self, target: Column | None) -> Schema:
        """Return this schema with another target.

        Parameters
        ----------
        target : Numeric, Category or None
            The new target.

        Returns
        -------
        Schema
            The new schema.
        """
        changed = Schema.__new__(Schema)
        changed.features, changed._box = self.features, self._box
        changed.person, changed.where = self.person, self.where
        changed._set_target(target)
        check_names(changed.features, changed.columns, changed.person)
        return changed

    def with_bounds(self, bounds: Mapping[str, tuple[float, float]]) -> Schema:
        """Return this schema with other bounds, such as those that `bounds` bought.

        Edges of bins that lie outside the new bounds are dropped.

        Parameters
        ----------
        bounds : dict of str to tuple of float
            The new lower and upper bound by the name of the column; other columns stay as they are.

        Returns
        -------
        Schema
            The new schema.

        Raises
        ------
        SchemaError
            If a name is not that of a numeric column.
        """
        numbers = {column.name for column in self.columns if isinstance(column, Numeric)}
        unknown = [name for name in bounds if name not in numbers]
        if unknown:
            raise SchemaError(
                f"Bounds were given for {unknown}, and the schema has no numeric columns of these names. Give bounds "
                f"for {sorted(numbers)}."
            )
        changed = [rebounded(column, bounds) for column in self.columns]
        if self.target is None:
            return Schema(changed, None, self.person, self.where) if self._box is None else self
        if self._box is not None:
            return self.with_target(changed[-1])
        return Schema(changed[:-1], changed[-1], self.person, self.where)

    geometry = geometry_of  # in geometry.py, beside the blocks that it makes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self._facts)

    def _repr_html_(self) -> str:
        lines = described(self, MOST_LEVELS)
        return fragment(table("Schema: what is public", ("column", "role", "public values"), lines))

    @property
    def _facts(self) -> tuple[object, ...]:
        return self.features, self.target, self._box, self.person, self.where

    def __repr__(self) -> str:
        width = "any number of" if self.any_width else str(len(self.features))
        target = "" if self.target is None else f", target {self.target.name!r}"
        person = "" if self.person is None else f", person {self.person!r}"
        where = f", where {', '.join(condition.name for condition in self.where)}" if self.where else ""
        return f"Schema({width} feature{'s' if width != '1' else ''}{target}{person}{where})"
