"""What private choices may spend: shares add up to what is charged, never to more."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.mechanisms.choices import SELECTIONS, Choices, _root, plan_choices
from privfit.privacy import Budget, PrivacyError, Terms, exact
from privfit.privacy.composition import rho_of

SHARES = st.lists(st.fractions(Fraction(1, 1000), 10), min_size=1, max_size=20)


def plan(selection: str = "auto", epsilon: float = 1.0, delta: float = 0.0, shares=(Fraction(1, 2), Fraction(1, 2)), **terms) -> Choices:
    return plan_choices("choices", Terms(Budget(epsilon, delta), **terms), selection, shares)


@given(SHARES, st.sampled_from(SELECTIONS), st.sampled_from([0.1, 0.3, 1.0, 7.5]))
def test_shares_of_epsilon_add_up_to_epsilon_exactly(shares, selection, epsilon) -> None:
    choices = plan(selection, epsilon, shares=shares)
    assert sum(choices.each) == exact(epsilon)
    assert (choices.event.epsilon, choices.event.delta, choices.event.rho) == (epsilon, 0.0, 0.0)
    assert all(each * sum(shares) == exact(epsilon) * share for each, share in zip(choices.each, shares, strict=True))


@settings(deadline=None)
@given(SHARES, st.sampled_from(["enhanced", "exponential"]), st.sampled_from([0.1, 1.0, 7.5]), st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_squares_of_choices_add_up_to_eight_rho_and_no_more(shares, selection, epsilon, delta) -> None:
    choices = plan(selection, epsilon, delta, [Fraction(1, 60)] * 40 + shares)
    spent = sum(each**2 for each in choices.each) / 8
    if choices.event.rho:
        assert choices.event.rho == rho_of(epsilon, delta)
        assert choices.event.delta == delta
        assert spent <= choices.event.cost.rho
        assert spent >= choices.event.cost.rho * (1 - Fraction(1, 10**9))
    else:
        assert sum(choices.each) == exact(epsilon)


@given(st.fractions(0, 10**6))
def test_roots_are_rounded_down_and_hardly(value) -> None:
    root = _root(value)
    assert root**2 <= value < (root + Fraction(1, 2**59)) ** 2


@pytest.mark.parametrize(
    ("selection", "rule", "by_range"),
    [
        ("auto", "permute-and-flip", True),
        ("permute-and-flip", "permute-and-flip", True),
        ("enhanced", "exponential", True),
        ("exponential", "exponential", False),
    ],
)
def test_every_selection_has_its_rule_and_its_bound(selection, rule, by_range) -> None:
    choices = plan(selection)
    assert (choices.rule, choices.event.noise, choices.by_range) == (rule, rule, by_range)


def test_permute_and_flip_never_spends_a_delta() -> None:
    """No proof says that it costs less than a sum of epsilons."""
    choices = plan("permute-and-flip", delta=1e-6, shares=[Fraction(1)] * 100)
    assert (choices.rule, choices.event.delta, choices.event.rho) == ("permute-and-flip", 0.0, 0.0)
    assert sum(choices.each) == 1


def test_auto_takes_the_exponential_rule_where_a_delta_makes_choices_clearly_sharper() -> None:
    few, many = (plan("auto", delta=1e-6, shares=[Fraction(1)] * number) for number in (1, 60))
    assert (few.rule, few.event.delta) == ("permute-and-flip", 0.0)
    assert (many.rule, many.event.delta) == ("exponential", 1e-6)
    assert sum(many.each) > Fraction(6, 5)


@given(st.integers(1, 2**30), st.sampled_from([0.1, 1.0]), st.integers(1, 9))
def test_a_scale_pays_for_its_reach_compared_exactly(reach, epsilon, number) -> None:
    choices = plan(epsilon=epsilon, shares=[Fraction(1)] * number)
    scale = choices.scale(number - 1, reach)
    assert Fraction(reach) <= Fraction(scale) * choices.each[-1]
    assert Fraction(reach) > Fraction(scale) * choices.each[-1] * (1 - Fraction(1, 2**50))


def test_scores_that_no_row_can_change_still_have_a_scale() -> None:
    assert plan().scale(0, 0) == plan().scale(0, 1) == 2.0


def test_the_event_tells_the_terms() -> None:
    event = plan(adjacency="add-remove", rows_per_person=3).event
    assert (event.adjacency, event.rows_per_person, event.n_values, event.mechanism) == ("add-remove", 3, 2, "choices")


def test_an_unknown_selection_is_refused() -> None:
    with pytest.raises(PrivacyError, match="selection='best' was given; it is one of"):
        plan("best")
