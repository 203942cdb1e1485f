"""The observer: everything that a fit, its model, its file and its ledger show, but for noise.

Tables of one setting are fitted with the same noisy answers. A model, its predictions, its file and its report are
functions of noisy values and public facts, so that all of them are the same, bit by bit, whatever the rows; and so are
errors, warnings, prints, logs, the calls to noise and ledger, and the passes over the table. No number has to be
masked.

Under replace-one any two tables of one length are joined by a chain of neighbours, and under add-remove any two tables:
what differs between tables that are no neighbours differs between some neighbours on the way. So every table is
compared with one ordinary table of its setting, the anchor.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

import privfit as pf
from privfit.models import inputs, private, survival_input
from privfit.summaries import release
from tests.support.watched import Log, WatchedLedger, WatchedNoise, watch_table

ASKED = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
CLOCK = re.compile(r"\b[0-9a-f]{32,}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^\s\"',]*")
"""Times, and hashes of what has times in it, as a ledger's chain: they differ between any two fits."""
SHORTEST_CLOCK = len("2026-01-01T00:00:00")

PLAIN = frozenset({type(None), bool, float})


@dataclass(frozen=True)
class Setting:
    """An estimator with its parameters, and how it is used."""

    name: str
    make: Callable[..., Any]
    schema: pf.Schema
    adjacency: str = "replace-one"
    exact: bool = True
    """False where by design what is released is no function of noisy answers alone: then results are not compared, nor
    the calls from the first one to noise on.
    """
    lengths: tuple[int, ...] = (1, 2, 12, 40, 200)
    thorough: bool = False
    """Whether all kinds of tables are tried at the longest length: for what has been found to break."""
    may_refuse: bool = False
    """Whether public facts may be a reason to refuse every table of some length: ridges too small for the precision of
    floats.
    """
    after: Callable[[Any], Any] | None = None
    """What else the model is asked."""
    fit: Callable[[Any, Any], Any] = lambda model, table: model.fit(table)

    @property
    def estimator(self) -> str:
        return self.name.partition("(")[0]

    def model(self, ledger: Any) -> Any:
        return self.make(schema=self.schema, adjacency=self.adjacency, ledger=ledger)


@dataclass
class Trace:
    """What was seen of one fit, in parts that are compared by name."""

    parts: dict[str, Any] = field(default_factory=dict)
    log: Log = field(default_factory=Log)

    @property
    def raised(self) -> bool:
        return bool(self.parts["errors"])


def observed(
    setting: Setting,
    table: Any,
    n_rows: int,
    public: Any,
    told: Log | None = None,
    *,
    source: Any = None,
    saves: bool = False,
) -> Trace:
    """Fit, ask and print, and where `saves`, save and load; and write down what shows. (A file is made of what the
    model holds, which is compared anyway.)
    """
    trace = Trace()
    parts, log = trace.parts, trace.log
    ledger = WatchedLedger(log, epsilon=1e7, delta=0.5)
    with everything_said(parts), watched(log, told, n_rows, source, setting.adjacency == "replace-one"):
        model, parts["errors"] = _tried(lambda: setting.model(ledger))
        if model is not None:
            before = sorted(vars(model))
            _, parts["errors"] = _tried(lambda: setting.fit(model, table))
            parts["outcome"] = "raised" if parts["errors"] else "released"
            if parts["errors"]:
                parts["left behind"] = [name for name in sorted(vars(model)) if name not in before]
            else:
                _ask(model, public, setting, parts)
                if saves and setting.exact and hasattr(model, "save"):
                    _save(model, public, parts)
    parts["ledger"] = [_without_time(entry) for entry in ledger.entries()]
    parts["steps"] = _steps(log, setting.exact)
    return trace


def differences(setting: Setting, one: Trace, other: Trace) -> list[str]:
    """What differs, in words. Only one of them may have been saved."""
    files = ("saved", "loaded", "printed after loading")
    names = [
        name
        for name in dict.fromkeys([*one.parts, *other.parts])
        if name not in files or (name in one.parts and name in other.parts)
    ]
    if one.raised != other.raised:
        names = ["errors", "outcome", "steps"]  # all else follows
    found = [_difference(name, one.parts.get(name), other.parts.get(name)) for name in names]
    return [text for text in found if text]


def breaches(trace: Trace) -> list[str]:
    """What no table may show, whatever its neighbours do."""
    found = []
    steps = [
        step[0] for step in trace.log.steps if step[:2] != ("noise", "keyed_bits")
    ]  # which deal rows, and cost nothing
    if trace.raised and trace.log.charged:
        found.append(f"raised after the charge: {trace.parts['errors'][0]}")
    if "noise" in steps and "charge" not in steps[: steps.index("noise")]:
        found.append("noise was drawn before the charge")
    if any(step[0] == "end of pass" and step[1] != 0 for step in trace.log.steps):
        found.append("a pass handed out more or fewer rows than the table has")
    if not trace.raised and not trace.log.charged:
        found.append("something was released and nothing charged")
    return found


# -- what is looked at -----------------------------------------------------------------------------


def _ask(model: Any, public: Any, setting: Setting, parts: dict[str, Any]) -> None:
    state = facts({name: value for name, value in vars(model).items() if name != "ledger"})
    parts["attributes"] = sorted(vars(model))
    report = model.report_
    parts["report"] = masked(str(report))
    parts["report's keys"] = list(report.to_dict())
    parts["repr"] = _tried(lambda: repr(model))[0]
    if not setting.exact:
        parts.pop("report")
        return
    parts["state"] = state
    for name in ASKED:
        if hasattr(model, name):
            parts[name] = facts(_tried(lambda name=name: getattr(model, name)(public)))
    if hasattr(model, "get_feature_names_out"):
        parts["names"] = facts(_tried(model.get_feature_names_out))
    if setting.after is not None:
        parts["after"] = facts(_tried(lambda: setting.after(model)))  # type: ignore[misc]


def _save(model: Any, public: Any, parts: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        saved = _tried(lambda: model.save(path))
        parts["saved"] = (saved, masked(path.read_text(encoding="utf-8")) if path.exists() else None)
        loaded, error = _tried(lambda: pf.load_model(path))
        parts["loaded"] = (error, facts(_tried(lambda: loaded.predict(public))) if loaded is not None else None)
        parts["printed after loading"] = (
            None if loaded is None else (masked(str(loaded.report_)), _tried(lambda: repr(loaded))[0])
        )


def _tried(call: Callable[[], Any]) -> tuple[Any, list[tuple[str, ...]]]:
    """What a call returned, or what it raised, with the whole chain behind it, suppressed or not."""
    try:
        return call(), []
    except BaseException as error:
        if type(error) is KeyboardInterrupt and not error.args:
            raise  # a person's own
        return None, _chain(error)


def _chain(error: BaseException | None) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        extra = sorted(name for name in vars(one) if name != "__notes__")
        found.append((type(one).__name__, str(one), *getattr(one, "__notes__", ()), *extra))
        waiting += [one.__cause__, one.__context__]
    return found


def facts(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """Any value as plain tuples that compare by content, private parts of objects included."""
    if type(value) in PLAIN:  # most of all values: nothing in them is a clock's
        return type(value).__name__, repr(value)
    if isinstance(value, int | float | complex | str | bytes | np.generic):
        return type(value).__name__, masked(repr(value))
    if id(value) in seen:
        return ("again",)
    inside = (*seen, id(value))
    if isinstance(value, np.ndarray):
        return (
            "array",
            value.dtype.str,
            value.shape,
            facts(value.tolist(), inside) if value.dtype == object else value.tobytes(),
        )
    if isinstance(value, dict):
        return "dict", tuple((facts(key, inside), facts(entry, inside)) for key, entry in value.items())
    if isinstance(value, list | tuple):
        if PLAIN.issuperset(map(type, value)):
            return type(value).__name__, repr(value)
        return type(value).__name__, tuple(facts(entry, inside) for entry in value)
    if isinstance(value, type | types.FunctionType | types.MethodType | types.BuiltinFunctionType | np.ufunc):
        return "function", getattr(value, "__qualname__", repr(value))
    if hasattr(value, "to_dicts"):
        return "frame", repr(value.to_dicts())
    if isinstance(value, pf.Ledger):
        return ("ledger",)
    if is_dataclass(value):
        named = {own.name: getattr(value, own.name) for own in fields(value)} | getattr(value, "__dict__", {})
        return type(value).__name__, facts(named, inside)
    if hasattr(value, "__dict__"):
        return type(value).__name__, facts(vars(value), inside)
    return type(value).__name__, repr(value) if type(value).__module__ in (
        "fractions",
        "decimal",
        "pathlib",
        "builtins",
    ) else ""


def _without_time(entry: Any) -> Any:
    return masked(repr(entry.to_dict()))


def masked(text: str) -> str:
    """A text without what a clock says."""
    return text if len(text) < SHORTEST_CLOCK else CLOCK.sub("#", text)


def _steps(log: Log, exact: bool) -> list[Any]:
    """The log. Where draws depend on rows by design, up to the first call to noise."""
    if exact:
        return [repr(step) for step in log.steps]
    first = next((place for place, step in enumerate(log.steps) if step[0] == "noise"), len(log.steps))
    return [repr(step) for step in log.steps[:first]]


def _difference(name: str, one: Any, other: Any) -> str:
    if one == other:
        return ""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        place, left, right = next((i, a, b) for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        return (
            _difference(f"{name}[{place}]", left, right)
            if isinstance(left, tuple | list)
            else f"{name}[{place}]: {_short(left, right)}"
        )
    return f"{name}: {_short(one, other)}"


def _short(one: Any, other: Any) -> str:
    left, right = (value if isinstance(value, str) else repr(value) for value in (one, other))
    start = max(
        0,
        next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))) - 60,
    )
    return f"{left[start : start + 200]!r} against {right[start : start + 200]!r}"


# -- where it is heard -----------------------------------------------------------------------------


class _Records(logging.Handler):
    """All records but Spark's: no table here is on Spark, and what earlier tests of this process left of one is freed,
    and says so, at any time.
    """

    def __init__(self) -> None:
        super().__init__(level=0)
        self.found: list[tuple[str, str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("py4j"):
            self.found.append((record.name, record.levelname, record.getMessage()))


@contextlib.contextmanager
def everything_said(parts: dict[str, Any]) -> Iterator[None]:
    """Warnings, logs, and what is written to either stream, by Python or below it."""
    records, root = _Records(), logging.getLogger()
    level = root.level
    with tempfile.TemporaryFile() as spoken, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        root.addHandler(records)
        root.setLevel(1)
        kept = [os.dup(1), os.dup(2)]
        try:
            with contextlib.redirect_stdout(_writer(spoken)), contextlib.redirect_stderr(_writer(spoken)):
                os.dup2(spoken.fileno(), 1)
                os.dup2(spoken.fileno(), 2)
                yield
        finally:
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            for number in kept:
                os.close(number)
            root.removeHandler(records)
            root.setLevel(level)
        spoken.seek(0)
        parts["written"] = spoken.read().decode(errors="replace")
    parts["warnings"] = [(warning.category.__name__, str(warning.message)) for warning in caught]
    parts["logs"] = records.found


class _writer:
    """A text stream on top of a file of bytes that is unbuffered on our side."""

    def __init__(self, under: Any) -> None:
        self._under = under

    def write(self, text: str) -> int:
        self._under.write(text.encode())
        self._under.flush()
        return len(text)

    def flush(self) -> None:
        self._under.flush()


@contextlib.contextmanager
def watched(log: Log, told: Log | None, n_rows: int, source: Any, counts_rows: bool) -> Iterator[None]:
    """The real wiring, with the noise source and the private table watched."""
    kept = private.noise_source, inputs.open_table, release.noise_source, release.open_table
    survival = survival_input.open_table
    first = [True]

    def opened(table: Any) -> Any:
        made = kept[1](table)
        private_one, first[0] = first[0], False  # the first table that is opened is the one to fit
        return watch_table(made, log, n_rows) if private_one else made

    noise = WatchedNoise(log, told, source, counts_rows)
    private.noise_source = release.noise_source = lambda random_state: noise  # type: ignore[assignment,return-value]
    inputs.open_table = release.open_table = survival_input.open_table = opened
    try:
        yield
    finally:
        private.noise_source, inputs.open_table, release.noise_source, release.open_table = kept
        survival_input.open_table = survival
