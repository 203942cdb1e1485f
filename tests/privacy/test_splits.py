"""Splits that a ledger keeps, and what releases on their parts cost together: in a file and in PostgreSQL."""

from __future__ import annotations

import itertools
import pickle
import random
import shutil
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path

import pytest

import privfit as pf
from privfit.privacy import Budget, Event
from privfit.privacy.budget import Cost, History, exact, rho_of, stated_epsilon
from privfit.privacy.errors import BudgetExceeded
from privfit.privacy.ledger.chain import history_fields, read_history
from privfit.privacy.ledger.splits import Split
from tests.support.kept_ledgers import KeptInDatabase

FIXTURES = Path(__file__).parents[1] / "fixtures"


def event(
    epsilon: float, split: Split | None = None, part: str = "fit", rows: int = 1, gaussian: bool = False
) -> Event:
    budget = Budget(epsilon, 1e-6 if gaussian else 0.0)
    make = Event.gaussian if gaussian else Event.laplace
    made = make("test", budget, sensitivity=1, adjacency="replace-one", rows_per_person=rows)
    return made if split is None else split.event(made, part, rows)


def opened(ledger: pf.Ledger, name: str = "holdout", identity: str = "content") -> Split:
    return ledger.split(name, identity, [None, [["x", "Numeric", []]]], "1/5")  # type: ignore[arg-type]


def test_a_split_is_made_once_and_is_the_same_ever_after(kept) -> None:
    ledger = kept.make(epsilon=1.0)
    split = opened(ledger)
    assert len(bytes.fromhex(split.key)) == 32
    assert split.key not in repr(split)
    for again in (ledger, pf.Ledger(kept.address), pickle.loads(pickle.dumps(ledger)), ledger.with_note("other")):
        assert opened(again) == split
    other = opened(ledger, "another")
    assert (other.id, other.key) != (split.id, split.key)
    assert opened(kept.other().make(epsilon=1.0)).key != split.key
    with pytest.raises(pf.LedgerError, match="of other columns, persons or another share"):
        opened(ledger, identity="person")
    assert not ledger.entries()
    ledger.verify()


def test_the_dearer_part_counts_and_the_whole_adds(kept) -> None:
    ledger = kept.make(epsilon=1.0)
    one, two = opened(ledger), opened(ledger, "two")
    steps: list[tuple[Split | None, str, float, float]] = [
        (one, "fit", 0.3, 0.3),
        (one, "evaluate", 0.3, 0.3),
        (one, "evaluate", 0.1, 0.4),
        (None, "", 0.1, 0.5),
        (one, "fit", 0.1, 0.5),
        (two, "fit", 0.1, 0.6),
        (two, "evaluate", 0.2, 0.7),
        (one, "fit", 0.1, 0.8),
    ]
    for own, part, price, spent in steps:
        ledger.charge(event(price, own, part))
        assert pf.Ledger(kept.address).spent.epsilon == spent
    ledger.verify()
    with pytest.raises(BudgetExceeded):
        ledger.charge(event(0.21, one, "fit"))
    ledger.charge(event(0.1, one, "evaluate"))  # what the cheaper part still has is free
    ledger.check(event(0.1, two, "fit"))
    ledger.charge(event(0.1, two, "fit"))
    assert ledger.spent.epsilon == 0.8
    ledger.charge(event(0.2))
    with pytest.raises(BudgetExceeded):
        ledger.charge(event(1e-9, one, "fit"))
    assert ledger.n_entries == 11
    told = ledger.entries()[1].event
    assert (told.split, told.split_part) == (one.id, "evaluate")
    assert ledger.entries()[3].event.of_split is None
    stated = {one.name for one in fields(Event) if one.init}
    assert all(set(entry.to_dict()["event"]) == stated for entry in ledger.entries())
    ledger.verify()


def test_gaussian_releases_on_parts(kept) -> None:
    """As many on both parts as on one part alone."""
    alone, both = (kept.other().make(epsilon=1.0, delta=1e-5) for _ in range(2))
    split = opened(both)
    for _ in range(3):
        alone.charge(event(0.3, gaussian=True))
        both.charge(event(0.3, split, "fit", gaussian=True))
        both.charge(event(0.3, split, "evaluate", gaussian=True))
    assert both.spent == alone.spent
    assert both.spent.delta == alone.spent.delta
    both.verify()


def test_several_rows_of_a_person_are_paid_for_in_both_parts_unless_persons_are_divided(kept) -> None:
    ledger = kept.make(epsilon=1.0)
    for identity, spent in (("content", 0.4), ("person", 0.6)):
        split = opened(ledger, identity, identity)
        ledger.charge(event(0.2, split, "fit", rows=2))
        ledger.charge(event(0.2, split, "evaluate", rows=2))
        assert ledger.spent.epsilon == spent


def test_parts_of_other_splits_are_refused(kept) -> None:
    ledger, stranger = kept.make(epsilon=1.0), kept.other().make(epsilon=1.0)
    split = opened(stranger)
    for wrong in (event(0.1, split), event(0.1, replace(opened(ledger), id="0" * 32)), event(0.1, opened(ledger), "?")):
        for use in (ledger.charge, ledger.check):
            with pytest.raises(pf.LedgerError, match="has not made this split"):
                use(wrong)
    assert not ledger.entries()


def test_a_split_that_was_changed_is_noticed(kept) -> None:
    ledger = kept.make(epsilon=1.0)
    split = opened(ledger)
    ledger.charge(event(0.1, split))
    kept.sql(f"UPDATE split SET key = '{'0' * 64}'")
    for use in (lambda: opened(ledger), lambda: ledger.charge(event(0.1, split))):
        with pytest.raises(pf.LedgerError, match="damaged"):
            use()
    kept.sql("DELETE FROM split")
    with pytest.raises(pf.LedgerError, match="has not made this split"):
        ledger.charge(event(0.1, split))
    assert opened(ledger).id != split.id  # a new key is a new split
    ledger.charge(event(0.1, opened(ledger)))
    assert ledger.spent.epsilon == 0.2


def test_a_part_that_is_written_over_is_noticed(kept) -> None:
    ledger = kept.make(epsilon=1.0)
    ledger.charge(event(0.1, opened(ledger)))
    kept.sql("UPDATE entry SET event = replace(event, '\"fit\"', '\"evaluate\"')")
    with pytest.raises(pf.LedgerError, match="damaged"):
        ledger.verify()


@pytest.mark.parametrize("version", [1, 2])
def test_ledgers_of_before_have_splits_too(version: int, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copyfile(FIXTURES / f"ledger-version-{version}.sqlite", path)
    ledger = pf.Ledger(path)
    spent, split = ledger.spent.epsilon, opened(ledger)
    least = event(1e-3, split)
    ledger.charge(least)
    ledger.charge(event(1e-3, split, "evaluate"))
    assert opened(pf.Ledger(path)) == split
    assert float(ledger.spent) == pytest.approx(spent + 1e-3, abs=1e-9)
    ledger.verify()


def test_readers_of_a_database_do_not_see_keys(database: KeptInDatabase) -> None:
    ledger = database.make(epsilon=1.0)
    opened(ledger)
    database.sql("DROP ROLE IF EXISTS split_reader", "CREATE ROLE split_reader", "DROP ROLE IF EXISTS split_spender",
                 "CREATE ROLE split_spender")  # fmt: skip
    ledger._placed.place.grant(readers=["split_reader"], spenders=["split_spender"])
    for role, may in (("split_reader", False), ("split_spender", True)):
        (found,) = database.sql(f"SELECT has_table_privilege('{role}', '{database.schema}.split', 'SELECT')")
        assert found == (may,)


# -- what is counted -------------------------------------------------------------------------------


def random_costs(rng: random.Random) -> list[tuple[Cost, tuple[str, str] | None]]:
    found = []
    for _ in range(rng.randint(1, 7)):
        epsilon, delta = rng.choice((0.05, 0.1, 0.3)), rng.choice((0.0, 1e-7, 4e-6))
        rho = exact(rho_of(epsilon, delta)) if delta and rng.random() < 0.6 else Fraction(0)
        place = rng.choice([None, *itertools.product(("s", "t"), ("fit", "evaluate"))])
        found.append((Cost(exact(epsilon), exact(delta), rho), place))
    return found


def test_no_choice_of_parts_costs_more_than_the_total() -> None:
    """The sums are, for every split, those of its part where they are largest; every choice of a part of each split is
    within all of them, and one sum of one choice reaches each.
    """
    rng = random.Random(0)
    for _ in range(300):
        costs, history = random_costs(rng), History()
        for cost, place in costs:
            history = history.after(cost, stated_epsilon(cost), 1.0, 1e-5, place)
        largest = {"direct": Fraction(0), "rho": Fraction(0), "delta": Fraction(0)}
        for choice in itertools.product(("fit", "evaluate"), repeat=2):
            chosen = dict(zip(("s", "t"), choice, strict=True))
            own = [cost for cost, place in costs if place is None or chosen[place[0]] == place[1]]
            sums = {
                "direct": sum((cost.epsilon for cost in own if not cost.rho), Fraction(0)),
                "rho": sum((cost.rho for cost in own), Fraction(0)),
                "delta": sum((cost.delta for cost in own), Fraction(0)),
            }
            for name, value in sums.items():
                assert value <= getattr(history, name)
                largest[name] = max(largest[name], value)
        assert all(getattr(history, name) == value for name, value in largest.items())
        assert read_history(history_fields(history)) == history


def test_without_parts_nothing_changes_in_a_file() -> None:
    assert "parts" not in history_fields(History().after(Cost(Fraction(1)), Fraction(1), 1.0, 0.0))


@pytest.mark.parametrize("parts", ["x", [["s", "fit", "1"]], [["s", "fit", "-1", "0", "0", "0", "0"]], [[1, 2]], [7]])
def test_damaged_parts_are_refused(parts) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_history(history_fields(History()) | {"parts": parts})
