"""What private choices may spend: shares add up to what is charged, never to more."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.mechanisms.genetic.selections import SELECTION_RULES, Choices, _root, plan_choices
from privfit.privacy import Budget, Event, PrivacyError, PrivacyParameters, exact
from privfit.privacy.budget import rho_of

SHARES = st.lists(st.fractions(Fraction(1, 1000), 10), min_size=1, max_size=20)


def plan(
    selection: str = "auto", epsilon: float = 1.0, delta: float = 0.0, shares=(Fraction(1, 2), Fraction(1, 2)), **terms
) -> Choices:
    return plan_choices("choices", PrivacyParameters(Budget(epsilon, delta), **terms), selection, shares)


def event_of(choices: Choices) -> Event:
    """One part for every choice."""
    return choices.event(choices.part(place) for place in range(len(choices.each)))


@given(SHARES, st.sampled_from(SELECTION_RULES), st.sampled_from([0.1, 0.3, 1.0, 7.5]))
def test_shares_of_epsilon_add_up_to_epsilon_exactly(shares, selection, epsilon) -> None:
    choices = plan(selection, epsilon, shares=shares)
    assert sum(choices.each) == exact(epsilon)
    assert (event_of(choices).epsilon, event_of(choices).delta, event_of(choices).rho) == (epsilon, 0.0, 0.0)
    assert [part.epsilon for part in event_of(choices).parts] == [float(each) for each in choices.each]
    assert all(each * sum(shares) == exact(epsilon) * share for each, share in zip(choices.each, shares, strict=True))


@settings(deadline=None)
@given(
    SHARES,
    st.sampled_from(["enhanced", "exponential"]),
    st.sampled_from([0.1, 1.0, 7.5]),
    st.sampled_from([1e-9, 1e-6, 1e-3]),
)
def test_squares_of_choices_add_up_to_eight_rho_and_no_more(shares, selection, epsilon, delta) -> None:
    choices = plan(selection, epsilon, delta, [Fraction(1, 60)] * 40 + shares)
    spent, event = sum(each**2 for each in choices.each) / 8, event_of(choices)
    if event.rho:
        assert event.rho == rho_of(epsilon, delta)
        assert event.delta == delta
        assert spent <= event.cost.rho
        assert spent >= event.cost.rho * (1 - Fraction(1, 10**9))
        assert sum(part.rho for part in event.parts) == pytest.approx(float(spent))
        assert not any(part.epsilon for part in event.parts)
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
    assert (choices.rule, event_of(choices).kinds, choices.by_range) == (rule, (rule,), by_range)


def test_permute_and_flip_never_spends_a_delta() -> None:
    """No proof says that it costs less than a sum of epsilons."""
    choices = plan("permute-and-flip", delta=1e-6, shares=[Fraction(1)] * 100)
    assert (choices.rule, event_of(choices).delta, event_of(choices).rho) == ("permute-and-flip", 0.0, 0.0)
    assert sum(choices.each) == 1


def test_auto_takes_the_exponential_rule_where_a_delta_makes_choices_clearly_sharper() -> None:
    few, many = (plan("auto", delta=1e-6, shares=[Fraction(1)] * number) for number in (1, 60))
    assert (few.rule, event_of(few).delta) == ("permute-and-flip", 0.0)
    assert (many.rule, event_of(many).delta) == ("exponential", 1e-6)
    assert sum(many.each) > Fraction(6, 5)


@given(st.integers(1, 2**30), st.sampled_from([0.1, 1.0]), st.integers(1, 9))
def test_a_scale_pays_for_its_sensitivity_compared_exactly(sensitivity, epsilon, number) -> None:
    choices = plan(epsilon=epsilon, shares=[Fraction(1)] * number)
    scale = choices.scale(number - 1, sensitivity)
    assert Fraction(sensitivity) <= Fraction(scale) * choices.each[-1]
    assert Fraction(sensitivity) > Fraction(scale) * choices.each[-1] * (1 - Fraction(1, 2**50))


def test_scores_that_no_row_can_change_still_have_a_scale() -> None:
    assert plan().scale(0, 0) == plan().scale(0, 1) == 2.0


def test_the_event_tells_the_terms() -> None:
    event = event_of(plan(adjacency="add-remove", rows_per_person=3))
    assert (event.adjacency, event.rows_per_person, event.n_values, event.mechanism) == ("add-remove", 3, 2, "choices")


def test_an_unknown_selection_is_refused() -> None:
    with pytest.raises(PrivacyError, match="selection='best' was given; it is one of"):
        plan("best")
