"""Control flow is an output too: neighbours differ in nothing but noise, whatever is done with them.

`make test` compares about 1,000 tables with an ordinary one of their setting, most of them adversarial; `make audit`
many more, with neighbours of each, and looks at the samplers that releases use.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from privfit.privacy import SecureNoise
from tests.conformance.control_flow import Setting, breaches, differences, observed
from tests.conformance.flow_settings import all_settings, known_mechanisms
from tests.conformance.flow_tables import ADVERSARIAL, FORMS, Family, family, public_table

SETTINGS = all_settings()
NAMES = [f"{place}-{setting.estimator}-{setting.adjacency}" for place, setting in enumerate(SETTINGS)]
LENGTHS_AT_ONCE, MANY = 2, 12
"""How many lengths of tables a setting has in the quick form; one if its estimator has more settings than that, where
every length is among them several times.
"""
SETTINGS_OF = Counter(setting.estimator for setting in SETTINGS)
NEIGHBOURS = 2
KINDS_IN_AUDIT = 8
MOST_TOLD = 12


def lengths(setting: Setting, place: int) -> list[int]:
    """The lengths of the quick form: short and long in turn."""
    first = setting.lengths.index(max(setting.lengths)) if setting.thorough else place
    turns = LENGTHS_AT_ONCE if setting.thorough or SETTINGS_OF[setting.estimator] <= MANY else 1
    return [setting.lengths[(first + 3 * turn) % len(setting.lengths)] for turn in range(turns)]


def quick_families(setting: Setting, place: int, length: int) -> Iterator[Family]:
    """An ordinary table, the anchor, and one that hurts: at the first length with a neighbour.

    Whatever is compared with the anchor is joined with it by neighbours, so that tables find as much as pairs.
    """
    first = length == lengths(setting, place)[0]
    yield alone(family(setting.schema, 2 * place + 1, length, setting.adjacency, place, 1))
    if not (setting.thorough and first):
        one = family(setting.schema, 2 * (place + 7 * length), length, setting.adjacency, place, 1)
        yield one if first else alone(one)
        return
    for kind in range(len(ADVERSARIAL)):
        yield family(setting.schema, 2 * kind, length, setting.adjacency, place, 1)


def alone(one: Family) -> Family:
    return replace(one, neighbours=[])


def long_families(setting: Setting, place: int, length: int) -> Iterator[Family]:
    """An ordinary table, and some of every adversarial kind, in turn with further ordinary ones."""
    for kind in range(KINDS_IN_AUDIT):
        yield family(
            setting.schema,
            2 * (place + kind * 5) + (kind % 2 == 0),
            length,
            setting.adjacency,
            1000 + place,
            NEIGHBOURS,
        )


def found_in(
    setting: Setting, families: Iterator[Family], form: str, folder: Path, source: object = None, saves: bool = False
) -> list[str]:
    """What differs between tables of these families.

    The first table is the anchor. Where `saves`, the first of every family is saved and loaded.
    """
    public, anchor, found = public_table(setting.schema), None, []
    for one in families:
        for turn, rows in enumerate([one.rows, *one.neighbours]):
            table = FORMS[form](setting.schema, rows, folder)
            told = None if anchor is None else anchor.log
            trace = observed(setting, table, len(rows), public, told, source=source, saves=saves and turn == 0)
            if (
                anchor is None and trace.raised and not setting.may_refuse and form != "stream"
            ):  # which some read too often
                found.append(f"nothing is released for an ordinary table: {trace.parts['errors'][0]}")
            anchor = trace if anchor is None else anchor
            said = [*breaches(trace), *differences(setting, anchor, trace)]
            found += [f"{one.name}, {len(rows)} rows, {form}{', neighbour' * (turn > 0)}: {text}" for text in said]
    return found


def form_of(place: int, length: int) -> str:
    return list(FORMS)[(place + place // 5 + length) % len(FORMS)]


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_of_other_tests() -> None:
    """What other tests forgot to close warns when it is collected: not while a fit is watched."""
    gc.collect()


@pytest.mark.usefixtures("few_refits")
@pytest.mark.parametrize("place", range(len(SETTINGS)), ids=NAMES)
def test_neighbours_differ_in_nothing_but_noise(place: int, tmp_path: Path) -> None:
    setting = SETTINGS[place]
    for length in lengths(setting, place):
        saves = length == lengths(setting, place)[0]
        found = found_in(setting, quick_families(setting, place, length), form_of(place, length), tmp_path, saves=saves)
        assert not found, "\n".join([setting.name, *found[:MOST_TOLD]])


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(SETTINGS)), ids=NAMES)
def test_many_more_neighbours_differ_in_nothing_but_noise(place: int, tmp_path: Path) -> None:
    """With every length, and with the samplers of a release: what those do with the values of a table is seen too."""
    setting = SETTINGS[place]
    for length in setting.lengths:
        source = SecureNoise() if length == setting.lengths[2] else None
        found = found_in(
            setting, long_families(setting, place, length), form_of(place + 1, length), tmp_path, source, saves=True
        )
        assert not found, "\n".join([setting.name, *found[:MOST_TOLD]])


# -- how much of it there is -----------------------------------------------------------------------


def test_there_are_a_thousand_tables_to_compare_of_every_kind_and_form() -> None:
    """Beside the anchors, one at every length of a setting, which are ordinary."""
    compared, neighbours = 0, 0
    kinds, forms, sizes = set(), set(), Counter()
    for place, setting in enumerate(SETTINGS):
        for length in lengths(setting, place):
            forms.add(form_of(place, length))
            sizes[setting.estimator, length] += 1
            anchor, *others = quick_families(setting, place, length)
            assert not anchor.adversarial
            assert others
            for one in others:
                assert one.adversarial
                assert all(one.neighbours)
                compared += 1 + len(one.neighbours)
                neighbours += len(one.neighbours)
                kinds.add(one.name)
    assert compared >= 1000
    assert neighbours >= len(SETTINGS)
    assert kinds.issuperset(name for name, _ in ADVERSARIAL)
    assert forms == set(FORMS)
    many = [name for name, settings in SETTINGS_OF.items() if settings > MANY]
    assert min(sizes[name, length] for name in many for length in Setting.lengths) >= 2


def test_every_estimator_and_every_mechanism_has_a_setting() -> None:
    from sklearn.base import BaseEstimator

    import privfit as pf
    from privfit import baselines

    exported = {thing for room in (pf, baselines) for thing in vars(room).values() if isinstance(thing, type)}
    estimators = {thing.__name__ for thing in exported if issubclass(thing, BaseEstimator)} - {
        "NoPrivacy",
        "Truncated",
    }  # not private
    assert estimators <= set(SETTINGS_OF)
    used: set[str] = set()
    for setting in SETTINGS:
        model = setting.model(None)
        chosen = model._chosen_mechanism()
        if getattr(model, "class_weight", None) == "balanced":
            used.add(type(model._weighed(chosen)).__name__)
        used |= {kind.__name__ for kind in type(chosen).__mro__} | {type(getattr(chosen, "settings", chosen)).__name__}
    assert known_mechanisms() - used == set()
