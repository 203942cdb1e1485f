"""Amounts of privacy: what may be one, and what a written number means."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfit.privacy import Adjacency, Amount, Budget, PrivacyError, PrivacyParameters, checked_adjacency, exact

POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False)


@pytest.mark.parametrize(
    "epsilon",
    [
        0,
        0.0,
        -0.0,
        -1,
        -1e-300,
        math.inf,
        -math.inf,
        math.nan,
        True,
        False,
        "1",
        None,
        1 + 0j,
        [1.0],
        np.array([1.0]),
        Decimal(1),
        b"1",
    ],
    ids=repr,
)
def test_an_epsilon_that_is_no_positive_finite_number_is_refused(epsilon):
    with pytest.raises(PrivacyError, match="epsilon="):
        Budget(epsilon)


@pytest.mark.parametrize(
    "epsilon", [10**400, Fraction(10) ** 400, Fraction(1, 10**400)], ids=["int", "fraction", "small fraction"]
)
def test_an_epsilon_that_no_float_can_hold_is_refused_and_never_becomes_zero_or_infinite(epsilon):
    with pytest.raises(PrivacyError, match="epsilon="):
        Budget(epsilon)


@pytest.mark.parametrize(
    "delta",
    [1, 1.0, 1.5, -1e-300, -1, math.inf, math.nan, True, False, "0", None, Decimal(0), Fraction(10**30 - 1, 10**30)],
    ids=repr,
)
def test_a_delta_outside_zero_to_one_is_refused(delta):
    with pytest.raises(PrivacyError, match="delta="):
        Budget(1.0, delta)


@given(POSITIVE, st.floats(0, 1, exclude_max=True))
def test_every_other_pair_is_kept_as_it_was_given(epsilon, delta):
    budget = Budget(epsilon, delta)
    assert (budget.epsilon, budget.delta) == (epsilon, delta)


@pytest.mark.parametrize("epsilon", [2, Fraction(1, 2), np.float64(0.5), np.float32(0.5), np.int64(3)], ids=repr)
def test_any_kind_of_real_number_becomes_a_plain_float(epsilon):
    assert type(Budget(epsilon).epsilon) is float
    assert Budget(epsilon).epsilon == epsilon


def test_a_budget_cannot_be_changed():
    budget = Budget(1.0, 1e-6)
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.epsilon = 2.0
    assert budget == Budget(1.0, 1e-6)


@pytest.mark.parametrize(
    ("written", "meant"), [(0.1, Fraction(1, 10)), (0.3, Fraction(3, 10)), (1e-6, Fraction(1, 10**6)), (2, Fraction(2))]
)
def test_a_written_number_means_its_decimal(written, meant):
    assert exact(written) == meant


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_written_number_is_within_half_a_step_of_the_float(value):
    assert float(exact(value)) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_exact_value(value):
    with pytest.raises((ValueError, OverflowError)):
        exact(value)


def test_an_amount_is_a_number_that_unpacks_into_epsilon_and_delta():
    amount = Amount(0.5, 1e-6)
    epsilon, delta = amount
    assert (epsilon, delta) == (amount.epsilon, amount.delta) == (0.5, 1e-6)
    assert amount + 1 == 1.5
    assert repr(amount) == "0.5 (delta 1e-06)"
    assert repr(Amount(0.1 + 0.2)) == "0.3"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda amount: pickle.loads(pickle.dumps(amount))])
def test_copies_of_an_amount_keep_their_delta(again):
    assert tuple(again(Amount(0.5, 1e-6))) == (0.5, 1e-6)


@pytest.mark.parametrize("adjacency", ["replace", "", None, 1, "REPLACE-ONE", "add_remove"])
def test_an_unknown_adjacency_is_refused(adjacency):
    with pytest.raises(PrivacyError, match="adjacency="):
        checked_adjacency(adjacency)
    with pytest.raises(PrivacyError, match="adjacency="):
        PrivacyParameters(Budget(1.0), adjacency)


def test_both_adjacencies_are_known():
    assert {checked_adjacency(name) for name in Adjacency.__args__} == {"replace-one", "add-remove"}


@pytest.mark.parametrize("name", ["rows_per_person", "expected_rows"])
@pytest.mark.parametrize("count", [0, -1, 1.0, 1.5, "1", True, math.nan])
def test_a_count_of_rows_that_is_no_positive_whole_number_is_refused(name, count):
    with pytest.raises(PrivacyError, match=f"{name}="):
        PrivacyParameters(Budget(1.0), **{name: count})


def test_rows_per_person_is_never_left_open():
    with pytest.raises(PrivacyError, match="rows_per_person"):
        PrivacyParameters(Budget(1.0), rows_per_person=None)
    assert PrivacyParameters(Budget(1.0), rows_per_person=np.int64(3)).rows_per_person == 3
