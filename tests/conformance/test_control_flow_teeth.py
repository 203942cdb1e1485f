"""The observer finds what it is for: mechanisms and models that are broken on purpose, each at one row, are flagged."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.rows import Rows
from tests.conformance.control_flow import Setting, breaches, differences, observed
from tests.conformance.flow_tables import FORMS, public_table

SCHEMA = pf.Schema([pf.Numeric("x", -1, 1), pf.Category("p", ["a", "b"])], target=pf.Numeric("y", -1, 1))
COMMON = [(0.25, "a", 0.5), (-0.5, "b", -0.5), (0.75, "a", 1.0)]
SPECIAL = [*COMMON[:2], (0.875, "b", 0.0)]
ANCHOR = [(0.0, "a", 0.0), (0.5, "b", 0.25), (-1.0, "b", 1.0)]


def has_special_row(rows: Rows) -> bool:
    return sum(int(np.sum(batch[0] == 0.875)) for batch in rows.batches()) > 0  # reads to the end in any case


@dataclass(frozen=True)
class Broken(pf.FunctionalMechanism):
    """A mechanism that does something else after the charge if one row is there."""

    deed: Callable[[Any], None] = lambda noise: None

    def release(self, rows: Any, terms: Any, ledger: Any, noise: Any, objective: Any) -> Any:
        special = has_special_row(rows)
        made = super().release(rows, terms, ledger, noise, objective)
        if special:
            self.deed(noise)
        return made


def _raise(noise: Any) -> None:
    raise pf.PrivacyError("no minimum")


def _chained(noise: Any) -> None:
    try:
        raise ValueError("0.875")
    except ValueError:
        raise pf.PrivacyError("no minimum") from None


DEEDS: dict[str, Callable[[Any], None]] = {
    "raises": _raise,
    "raises, with the cell in the chain of causes": _chained,
    "exits": lambda noise: sys.exit(3),
    "warns": lambda noise: warnings.warn("steep", RuntimeWarning, stacklevel=1),
    "draws once more": lambda noise: noise.laplace(np.zeros(1, dtype=np.int64), 1.0),
    "prints": lambda noise: print("hm"),
    "writes below Python": lambda noise: __import__("os").write(2, b"panicked at 0.875"),
    "logs": lambda noise: logging.getLogger("privfit.anything").debug("row %s", 3),
}


def setting(**parameters: Any) -> Setting:
    make = parameters.pop("make", pf.LinearRegression)
    return Setting("broken", lambda **given: make(**parameters, **given), SCHEMA)


def told_apart(broken: Setting, tmp_path: Path, form: str = "polars") -> tuple[list[str], list[str]]:
    """What is found between the two neighbours, and in the second alone."""
    public = public_table(SCHEMA)
    anchor = observed(broken, FORMS[form](SCHEMA, ANCHOR, tmp_path), 3, public)
    left, right = (
        observed(broken, FORMS[form](SCHEMA, rows, tmp_path), 3, public, anchor.log, saves=True)
        for rows in (COMMON, SPECIAL)
    )
    assert not breaches(left)
    assert not differences(broken, anchor, left)
    return differences(broken, left, right), breaches(right)


def test_a_sound_model_is_not_flagged(tmp_path: Path) -> None:
    assert told_apart(setting(), tmp_path) == ([], [])
    assert told_apart(setting(mechanism=Broken()), tmp_path) == ([], [])


@pytest.mark.parametrize("deed", list(DEEDS))
def test_what_a_mechanism_does_for_one_row_is_seen(deed: str, tmp_path: Path) -> None:
    found, alone = told_apart(setting(mechanism=Broken(deed=DEEDS[deed])), tmp_path)
    assert found
    assert bool(alone) == (deed.startswith("raises") or deed == "exits")


class Tells(pf.LinearRegression):
    """A model that keeps something of one row."""

    place = ""

    def fit(self, X: Any, y: Any = None) -> Tells:
        super().fit(X, y)
        value = float(X["x"].max())
        special = value == 0.875
        if self.place == "attribute" and special:
            self.extra_ = 1
        elif self.place == "deep in an attribute":
            self._kept = {"of": [np.array([value])]}
        elif self.place == "names" and special:
            self.feature_names_in_ = np.array(["0.875", "p"], dtype=object)
        elif self.place == "report" and special:
            object.__setattr__(self.report_, "notes", (*self.report_.notes, "a row lies apart"))
        elif self.place == "report's number" and special:
            object.__setattr__(self.report_, "sensitivity", self.report_.sensitivity * (1 + 1e-15))
        elif self.place == "coefficients":
            self.coef_ = self.coef_ + 1e-9 * value
        return self


PLACES = ["attribute", "deep in an attribute", "names", "report", "report's number", "coefficients"]


@pytest.mark.parametrize("place", PLACES)
def test_what_a_model_keeps_gradient_norm_is_seen(place: str, tmp_path: Path) -> None:
    public = public_table(SCHEMA)
    kind = type("LinearRegression", (Tells,), {"place": place, "__init__": pf.LinearRegression.__init__})
    broken = setting(make=kind)
    anchor = observed(broken, FORMS["polars"](SCHEMA, COMMON, tmp_path), 3, public)
    other = observed(broken, FORMS["polars"](SCHEMA, SPECIAL, tmp_path), 3, public, anchor.log)
    assert differences(broken, anchor, other)


def test_a_read_that_ends_early_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As an engine that stops without an error at a row it cannot compute: fewer rows, and the fit goes on."""
    from privfit.tables.polars_tables import PolarsTable

    batches = PolarsTable.batches

    def shorter(self: Any, columns: Any, positions: Any, rows: int) -> Iterator[Any]:
        for batch in batches(self, columns, positions, 1):
            if 0.875 in batch[0]:
                return
            yield batch

    monkeypatch.setattr(PolarsTable, "batches", shorter)
    found, alone = told_apart(setting(), tmp_path)
    assert found
    assert alone


def test_a_charge_that_comes_after_the_draw_is_seen(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Late(pf.FunctionalMechanism):
        def release(self, rows: Any, terms: Any, ledger: Any, noise: Any, objective: Any) -> Any:
            made = super().release(rows, terms, None, noise, objective)
            ledger.charge(made.event, dataset=rows.label)
            return made

    trace = observed(setting(mechanism=Late()), FORMS["polars"](SCHEMA, COMMON, tmp_path), 3, public_table(SCHEMA))
    assert breaches(trace) == ["noise was drawn before the charge"]


def test_a_charge_that_names_a_cell_or_depends_on_one_is_seen(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Naming(pf.FunctionalMechanism):
        def release(self, rows: Any, terms: Any, ledger: Any, noise: Any, objective: Any) -> Any:
            rows.label = "b" if has_special_row(rows) else "a"
            return super().release(rows, terms, ledger, noise, objective)

    found, _ = told_apart(setting(mechanism=Naming()), tmp_path)
    assert any(text.startswith("ledger") for text in found)


def test_a_call_to_noise_of_another_shape_is_seen(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Longer(pf.FunctionalMechanism):
        def release(self, rows: Any, terms: Any, ledger: Any, noise: Any, objective: Any) -> Any:
            special = has_special_row(rows)
            made = super().release(rows, terms, ledger, noise, objective)
            noise.select([0] * (1 + special), 1.0)
            return made

    found, _ = told_apart(setting(mechanism=Longer()), tmp_path)
    assert any(text.startswith("steps") for text in found)


def test_a_sampler_that_fails_at_some_values_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Answers are replayed, and the sampler is asked all the same, with the values of the table."""
    from privfit.privacy import SeededNoise

    laplace = SeededNoise.laplace
    largest: list[int] = []

    def picky(self: Any, values: Any, scale: float) -> Any:
        largest.append(int(np.abs(values).max()))
        if len(largest) > 2 and largest[-1] != largest[-2]:
            raise OverflowError("too large")
        return laplace(self, values, scale)

    monkeypatch.setattr(SeededNoise, "laplace", picky)
    found, alone = told_apart(setting(fit_intercept=False), tmp_path)
    assert found
    assert alone
