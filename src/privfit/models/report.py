"""The report of a fit: what was promised, what it cost, and what was taken for public."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from privfit.models.release import Known, release_facts
from privfit.privacy import Event, Ledger
from privfit.privacy.parts import Additive
from privfit.report import html_page, markdown_page, registry
from privfit.report.notebook import fragment, table
from privfit.schema import Schema

JSONObject = dict[str, Any]
"""What json reads and writes; values are checked where they are read."""

SELECTION_RULES = ("permute-and-flip", "exponential")


class Documented(Protocol):
    """What goes into the document of a release as plain values: an evaluation, or an audit."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        ...


@dataclass(frozen=True)
class Report:
    """The privacy report of a fit: what was guaranteed, what was drawn, and what was taken as public.

    It prints as a table; `to_dict` is for programs.

    Parameters
    ----------
    model : str
        Name of the estimator.
    mechanism : str
        Name of the mechanism.
    epsilon : float
        Privacy budget that was spent.
    delta : float
        Delta that was spent.
    adjacency : {'replace-one', 'add-remove'}
        Which tables are neighbours.
    rows_per_person : int
        Largest number of rows of one person.
    sensitivity : float
        Sensitivity of what was released.
    noise_scale : float
        Scale of the noise.
    noise : str
        Distribution of the noise, or the rule of selection.
    released_values : int
        Number of values that were released, or of private selections.
    repairs : dict
        What was done to the release to make it usable.
    public : tuple of str
        What was taken as public.
    private : bool
        Whether the fit is private.
    not_private_because : tuple of str, default=()
        Why it is not private, if it is not.
    notes : tuple of str, default=()
        What else is worth knowing.
    event : dict, optional
        The event of the release as plain values.
    noise_deviation : float or None, default=None
        Standard deviation of the noise on one released value; the root of its mean square where parts differ.
    receipt : dict, optional
        Which ledger and which of its entries paid, and the head of its chain then; empty where no ledger was given.
    person_column : bool or None, default=None
        Whether a person column made sure of the rows per person; False where they were taken on trust.
    cautions : tuple of str, default=()
        What qualifies `private`: a large epsilon, a large delta, no ledger.

    See Also
    --------
    Ledger : The budget that a receipt names.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 1000).reshape(-1, 1)
    >>> model = pf.LinearRegression(epsilon=0.5, schema=pf.Schema.box(-1, 1, target=(-1, 1))).fit(X, 0.5 * X[:, 0])
    >>> model.report_.epsilon, model.report_.private
    (0.5, True)
    >>> print(model.report_)  # doctest: +ELLIPSIS
    Privacy report of LinearRegression
    ...
    """

    model: str
    mechanism: str
    epsilon: float
    delta: float
    adjacency: str
    rows_per_person: int
    sensitivity: float
    noise_scale: float
    noise: str
    released_values: int
    repairs: JSONObject
    public: tuple[str, ...]
    private: bool
    not_private_because: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    event: JSONObject = field(default_factory=dict, repr=False)
    noise_deviation: float | None = None
    """The standard deviation of the noise on one released value (of the first block, where L-infinity noise has
    several; the root of its mean square, where parts differ).
    """
    receipt: JSONObject = field(default_factory=dict, repr=False, compare=False)
    """Which ledger and which of its entries paid, and the head of its chain then (`Ledger.verify(receipt)`); empty
    where no ledger was given.
    """
    person_column: bool | None = None
    """Whether a person column made sure that nobody has more rows; False where that was taken on trust, None in reports
    that were written before it was known.
    """
    cautions: tuple[str, ...] = ()
    """What qualifies `private`, in sentences: a large epsilon, a large delta, no ledger. Empty where nothing does."""

    def _of_noise(self) -> list[tuple[str, str]]:
        if self.noise in SELECTION_RULES:
            rule = "the exponential mechanism" if self.noise == "exponential" else self.noise
            plural = "s" * (self.released_values != 1)
            return [("selections", f"{self.released_values} private selection{plural} by {rule}")]
        on = f"on {self.released_values} released values"
        return [
            ("sensitivity", f"{self.sensitivity:.6g}"),
            ("noise", f"{self.noise}, {self._scale()}{self._deviation()}{on}"),
        ]

    def _scale(self) -> str:
        main = Event.from_dict(self.event).main if self.event else ()
        scales = [part.scale / part.unit for part in main if isinstance(part, Additive) and part.scale] or [
            self.noise_scale
        ]
        low, high = min(scales), max(scales)
        return f"scale {low:.6g}, " if low == high else f"scales {low:.6g} to {high:.6g}, "

    def _deviation(self) -> str:
        return "" if self.noise_deviation is None else f"standard deviation {self.noise_deviation:.4g}, "

    def to_dict(self) -> JSONObject:
        """Return the report as plain values, ready for JSON.

        Returns
        -------
        dict
            One entry per field.
        """
        plain = asdict(self)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}

    @classmethod
    def from_dict(cls, plain: JSONObject) -> Report:
        """Make the report again that `to_dict` wrote.

        Parameters
        ----------
        plain : dict
            One entry per field.

        Returns
        -------
        Report
            The report.
        """
        fields: JSONObject = {key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()}
        if plain.get("event"):
            event = Event.from_dict(plain["event"])
            fields |= {"event": event.to_dict(), "noise": event.in_words or plain["noise"]}
        return cls(**fields)

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        schema: Schema | None = None,
        ledger: Ledger | None = None,
        evaluation: Documented | None = None,
        audit: Documented | None = None,
        publisher: str = "",
    ) -> str:
        """Return a page about the release: one HTML file without scripts, which needs no network.

        Parameters
        ----------
        path : str, Path or None, default=None
            A file to write the page to.
        schema : Schema or None, default=None
            The public facts, `model.schema_`, to list.
        ledger : Ledger or None, default=None
            The ledger that paid, to list what else was spent.
        evaluation : Evaluation or None, default=None
            What `pf.evaluate` measured of this model.
        audit : AuditResult or None, default=None
            What `pf.audit.mechanisms` found.
        publisher : str, default=""
            Who releases the model.

        Returns
        -------
        str
            The page.
        """
        text = html_page.page(release_facts(self.to_dict(), _known(schema, ledger, evaluation, audit, publisher)))
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_markdown(
        self,
        *,
        schema: Schema | None = None,
        ledger: Ledger | None = None,
        evaluation: Documented | None = None,
        audit: Documented | None = None,
        publisher: str = "",
    ) -> str:
        """Return the same document as `to_html`, as Markdown.

        Parameters
        ----------
        schema : Schema or None, default=None
            The public facts, `model.schema_`, to list.
        ledger : Ledger or None, default=None
            The ledger that paid, to list what else was spent.
        evaluation : Evaluation or None, default=None
            What `pf.evaluate` measured of this model.
        audit : AuditResult or None, default=None
            What `pf.audit.mechanisms` found.
        publisher : str, default=""
            Who releases the model.

        Returns
        -------
        str
            The document.
        """
        known = _known(schema, ledger, evaluation, audit, publisher)
        return markdown_page.markdown(release_facts(self.to_dict(), known))

    def to_registry(self) -> str:
        """Return a draft entry for a public registry of deployments; what only the owner knows is null.

        Returns
        -------
        str
            YAML text.
        """
        return registry.entry(release_facts(self.to_dict(), Known()))

    def _lines(self) -> list[tuple[str, str]]:
        """What the report says, as pairs of a name and a text."""
        neighbours = {"replace-one": "one person's row changes", "add-remove": "one person's row is there or not"}[
            self.adjacency
        ]
        return [
            ("mechanism", self.mechanism),
            ("epsilon", f"{self.epsilon:g}"),
            ("delta", f"{self.delta:g}"),
            ("neighbours", f"{self.adjacency}: {neighbours}"),
            ("rows per person", f"at most {self.rows_per_person}{self._of_persons()}"),
            *self._of_noise(),
            ("repairs", self._repairs_in_words()),
            ("taken as public", "; ".join(self.public)),
            *(("note", note) for note in self.notes),
            *zip(("private", *[""] * len(self.cautions)), self._private_in_words(), strict=False),
        ]

    def __str__(self) -> str:
        rows = self._lines()
        width = max(len(name) for name, _ in rows)
        lines = [f"Privacy report of {self.model}", ""]
        return "\n".join([*lines, *(f"  {name:<{width}}  {text}" for name, text in rows)])

    def _of_persons(self) -> str:
        """How it is known that nobody has more rows."""
        told = {True: ": others were left out", False: ", taken on trust: the schema names no person column"}
        return "" if self.person_column is None else told[self.person_column]

    def _private_in_words(self) -> list[str]:
        """Whether it is private, and what qualifies that: a line each."""
        if not self.private:
            return ["NO: " + "; ".join(self.not_private_because)]
        return [("and " if place else "yes, but ") + caution for place, caution in enumerate(self.cautions)] or ["yes"]

    def _repairs_in_words(self) -> str:
        done = self.repairs
        if not done:
            return "none"
        if "directions" not in done:
            return f"ridge {done['ridge']:.4g}"
        parts = [str(done["kind"]), f"{done['directions_kept']:.1f} of {done['directions']} directions kept"]
        if done["eigenvalues_changed"]:
            parts.append(f"{done['eigenvalues_changed']} eigenvalue{'s' * (done['eigenvalues_changed'] != 1)} changed")
        if done["ridge"]:
            parts.append(f"ridge {done['ridge']:.4g}")
        if not done["bounded"]:
            parts.append("the noisy objective has NO minimum")
        return ", ".join(parts)

    def _repr_html_(self) -> str:
        return fragment(table(f"Privacy report of {self.model}", ("what", "value"), self._lines()))


def _known(
    schema: Schema | None,
    ledger: Ledger | None,
    evaluation: Documented | None,
    audit: Documented | None,
    publisher: str,
) -> Known:
    measured = None if evaluation is None else evaluation.to_dict()
    attacked = None if audit is None else audit.to_dict()
    return Known(schema, ledger, evaluation=measured, audit=attacked, publisher=publisher)
