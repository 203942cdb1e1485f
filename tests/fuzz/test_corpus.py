"""Hostile input, replayed: what coverage-guided fuzzing has reached, and some that is drawn anew."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privfit as pf
from tests.fuzz import rules, tables
from tests.fuzz.corpus import CORPUS, TARGETS, inputs, run
from tests.fuzz.source import Source

DRAWN = {"schemas": 150, "models": 40, "ledgers": 30, "tables": 15, "commands": 10}
"""Inputs that are drawn anew: a few seconds for each target."""


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_kept_small_and_there_is_one(name: str) -> None:
    assert len(inputs(name)) >= 10
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 200_000


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_of_the_corpus_keeps_the_rules(name: str) -> None:
    for content in inputs(name):
        run(name, content)


@pytest.mark.parametrize("name", TARGETS)
def test_so_do_inputs_that_are_drawn_anew(name: str) -> None:
    @settings(max_examples=DRAWN[name], suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=300))
    def replay(content: bytes) -> None:
        run(name, content)

    replay()


# -- the rules themselves: each finds what it is for ----------------------------------------------


def test_a_cell_in_an_error_its_chain_or_a_warning_is_found() -> None:
    def told() -> None:
        raise pf.DataError(f"no level {rules.MARKED_TEXT}")

    def chained() -> None:
        try:
            float(rules.MARKED_TEXT)
        except ValueError as error:
            raise pf.DataError("not a number") from error

    def warned() -> None:
        import warnings

        warnings.warn(f"clipped {rules.MARKED_NUMBER}", pf.PrivacyWarning, stacklevel=1)

    for act in (told, chained, warned):
        with pytest.raises(AssertionError, match="a cell in a message"):
            rules.attempt(act)


def test_errors_of_others_pass_through_and_ours_are_handed_back() -> None:
    with pytest.raises(ZeroDivisionError):
        rules.attempt(lambda: 1 / 0)
    result, refusal = rules.attempt(lambda: pf.Schema([]))
    assert result is None
    assert isinstance(refusal, pf.SchemaError)


@pytest.mark.parametrize("code", ["1 + 1", "__import__('os').getcwd()"])
def test_code_that_is_run_is_found(code: str) -> None:
    with pytest.raises(AssertionError, match="code was run"):
        rules.attempt_reading(lambda: eval(code))


def test_a_connection_that_is_opened_is_found(tmp_path) -> None:
    import socket

    def call() -> None:
        with socket.socket() as one:
            one.connect_ex(("127.0.0.1", 1))

    with pytest.raises(AssertionError, match=r"socket\.connect"):
        rules.attempt_reading(call)


def test_time_and_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "SECONDS", -1.0)
    with pytest.raises(AssertionError, match="seconds"), rules.bounded():
        pass
    monkeypatch.undo()
    monkeypatch.setattr(rules, "MEGABYTES", -1.0)
    with pytest.raises(AssertionError, match="MB"), rules.bounded():
        pass


def test_fuzzing_finds_models_that_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    from privfit.models import saving

    monkeypatch.setattr(saving, "try_out", lambda model: None)
    assert _is_found("models")


def test_fuzzing_finds_ledgers_with_triggers(monkeypatch: pytest.MonkeyPatch) -> None:
    from privfit.privacy.ledger.file import FileRecords

    def budget(self: FileRecords) -> list[tuple]:
        return self.connection.execute("SELECT * FROM budget LIMIT 2").fetchall()

    monkeypatch.setattr(FileRecords, "budget", budget)
    assert _is_found("ledgers")


def test_fuzzing_finds_charges_without_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    from privfit.models.private import PrivateModel

    def failing(self: PrivateModel, *given: object) -> None:
        raise pf.DataError("after the charge")

    monkeypatch.setattr(PrivateModel, "_report", failing)
    assert _is_found("tables")


def _is_found(name: str) -> bool:
    """Whether an input of the corpus, or one of 300 others that are always the same, breaks a rule."""
    rng = random.Random(43)
    more = (rng.randbytes(rng.choice((12, 25, 50, 100))) for _ in range(300))
    return any(_breaks(name, content) for content in itertools.chain(inputs(name), more))


def _breaks(name: str, content: bytes) -> bool:
    try:
        run(name, content)
    except Exception:
        return True
    return False


def test_zeros_follow_where_an_input_ends() -> None:
    source = Source(b"\x05")
    assert [source.whole(0, 9), source.whole(0, 9), source.pick("abc"), source.flag()] == [5, 0, "a", False]
    assert source.ended


def test_every_arrow_type_is_drawn_that_python_can_make() -> None:
    known = {getattr(pa.lib, name): name for name in dir(pa.lib) if name.startswith("Type_")}
    drawn = {kind.id for kind, _ in tables.TYPES}
    assert {name for number, name in known.items() if number not in drawn} <= {
        "Type_INTERVAL_DAY_TIME",
        "Type_INTERVAL_MONTHS",
    }
    for kind, values in tables.TYPES:
        assert len(tables._array([*values, None, None], kind)) == len(values) + 2
