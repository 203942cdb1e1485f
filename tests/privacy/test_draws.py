"""Draws: the parts of an event are handed out in order, each once, and nothing else is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privfit.privacy import Draws, Event, PrivacyError, SeededNoise, noised
from privfit.privacy.draws import RandomIntegers
from privfit.privacy.parts import (
    Additive,
    DiscreteGaussian,
    HeldThreshold,
    KNorm,
    Laplace,
    Part,
    RandomBits,
    Repeat,
    RoundedGaussian,
    Selection,
    Threshold,
)
from privfit.privacy.samplers.patterns import Chain
from privfit.privacy.samplers.threshold import lifted

THREE = np.array([5, -7, 100])
CHAIN = Chain(((1, 2), (3, 4)), ())


class Listening(SeededNoise):
    """Seeded noise that notes which kinds were drawn, of which size and at which scale."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.asked: list[tuple] = []

    def _noted(self, kind: str, values, scale: float, *facts):
        self.asked.append((kind, values.size, scale, *facts))
        return getattr(super(), kind)(values, scale, *facts)

    def laplace(self, values, scale):
        return self._noted("laplace", values, scale)

    def gaussian(self, values, scale):
        self.asked.append(("gaussian", values.size, scale))
        return values

    def normal(self, values, scale):
        return self._noted("normal", values, scale)

    def linf(self, values, scale):
        return self._noted("linf", values, scale)

    def l2(self, values, scale):
        return self._noted("l2", values, scale)

    def block_norm(self, values, scale, widths):
        return self._noted("block_norm", values, scale, tuple(widths))

    def select_each(self, menus, scale, rule):
        self.asked.append((rule, tuple(map(len, menus)), scale))
        return super().select_each(menus, scale, rule)

    def pattern(self, chains, scale):
        self.asked.append(("pattern", len(chains), scale))
        return 0, (1,)

    def one_in(self, count):
        self.asked.append(("coin", count))
        return False


def draws_of(*parts: Part, sampler=None, paid: bool = True) -> Draws:
    return Draws(Event("test", 1.0, parts=parts), sampler or SeededNoise(0), paid=paid)


# -- order -----------------------------------------------------------------------------------------

ADDITIVE = [
    (Laplace(size=3, scale=2.0), ("laplace", 3, 2.0)),
    (DiscreteGaussian(size=3, scale=2.0), ("gaussian", 3, 2.0)),
    (RoundedGaussian(size=3, scale=2.0), ("normal", 3, 2.0)),
    (KNorm(norm="l2", size=3, scale=2.0), ("l2", 3, 2.0)),
    (KNorm(norm="linf", size=3, scale=2.0), ("linf", 3, 2.0)),
    (KNorm(norm="blocks", size=3, blocks=(1, 2), scale=2e6), ("block_norm", 3, 2e6, (1, 2))),
]


@pytest.mark.parametrize(("part", "call"), ADDITIVE, ids=repr)
def test_every_kind_of_noise_is_drawn_once_from_the_sampler(part: Additive, call: tuple) -> None:
    sampler = Listening()
    draws = draws_of(part, sampler=sampler)
    noisy = draws.add(THREE)
    assert (noisy.shape, noisy.dtype) == ((3,), np.int64)
    assert sampler.asked == [call]
    draws.finish()


def test_blocks_of_l_infinity_noise_are_drawn_one_after_the_other() -> None:
    sampler = Listening(4)
    found = draws_of(KNorm(norm="linf", size=3, blocks=(2, 1), scale=6.0), sampler=sampler).add(THREE)
    same = SeededNoise(4)
    assert found.tolist() == [*same.linf(THREE[:2], 6.0), *same.linf(THREE[2:], 6.0)]
    assert sampler.asked == [("linf", 2, 6.0), ("linf", 1, 6.0)]


def test_values_keep_their_shape_and_are_not_changed() -> None:
    values = np.arange(6).reshape(2, 3)
    noisy = draws_of(Laplace(size=6, scale=1e6)).add(values)
    assert noisy.shape == (2, 3)
    np.testing.assert_array_equal(values, np.arange(6).reshape(2, 3))
    assert (noisy != values).all()


def test_one_call_may_take_several_parts() -> None:
    sampler = Listening()
    draws = draws_of(Laplace(size=1, scale=2.0), KNorm(norm="linf", size=2, scale=3.0), sampler=sampler)
    draws.add(THREE)
    draws.finish()
    assert sampler.asked == [("laplace", 1, 2.0), ("linf", 2, 3.0)]


def test_parts_are_drawn_in_their_order() -> None:
    sampler = Listening()
    draws = draws_of(
        Laplace(size=3, scale=2.0),
        Selection(rule="exponential", scale=4.0),
        Selection(rule="permute-and-flip", scale=5.0, count=2),
        RandomBits(),
        DiscreteGaussian(size=1, scale=6.0),
        sampler=sampler,
    )
    draws.add(THREE)
    assert draws.select([1, 2, 3]) in (0, 1, 2)
    assert len(draws.select_each([[1, 2], [3, 4]])) == 2
    draws.select([7, 8])
    draws.random_bits()
    draws.add(THREE[:1])
    draws.finish()
    assert sampler.asked == [
        ("laplace", 3, 2.0),
        ("exponential", (3,), 4.0),
        ("permute-and-flip", (2, 2), 5.0),
        ("permute-and-flip", (2,), 5.0),
        ("gaussian", 1, 6.0),
    ]


ASKED = {
    "noise": lambda draws: draws.add(THREE),
    "noise in pieces": lambda draws: draws.add_in_pieces(THREE),
    "a choice": lambda draws: draws.select([1, 2]),
    "choices": lambda draws: draws.select_each([[1, 2], [1]]),
    "a pattern": lambda draws: draws.pattern([CHAIN]),
    "cells": lambda draws: draws.passing([3, 4], 2),
    "held cells": lambda draws: draws.passing_held([3, 4]),
    "random bits": lambda draws: draws.random_bits(),
    "random integers": lambda draws: draws.random_integers(),
    "accept": lambda draws: draws.accept(),
    "a coin": lambda draws: draws.gives_up(),
    "the end": lambda draws: draws.finish(),
}
FITTING = {
    Laplace(size=3, scale=2.0): {"noise", "noise in pieces"},
    KNorm(norm="l2", size=3, scale=2.0): {"noise"},
    Selection(rule="exponential", scale=2.0): {"a choice", "choices", "a pattern"},
    Threshold(size=9, scale=2.0, threshold=5): {"cells"},
    HeldThreshold(size=9, scale=2.0, threshold=5): {"held cells"},
    RandomBits(): {"random bits", "random integers"},
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("part", FITTING, ids=repr)
def test_the_wrong_kind_is_refused(part: Part, asked: str) -> None:
    sampler = Listening()
    draws = draws_of(part, sampler=sampler)
    if asked in FITTING[part]:
        ASKED[asked](draws)
        draws.finish()
        return
    with pytest.raises(PrivacyError, match="describes every draw, in order"):
        ASKED[asked](draws)
    assert sampler.asked == []


@pytest.mark.parametrize("asked", [name for name in ASKED if name != "the end"])
def test_nothing_is_drawn_behind_the_last_part(asked: str) -> None:
    sampler = Listening()
    with pytest.raises(PrivacyError, match="nothing more"):
        ASKED[asked](draws_of(sampler=sampler))
    draws = draws_of(Laplace(size=3, scale=1.0), sampler=sampler)
    draws.add(THREE)
    with pytest.raises(PrivacyError, match="nothing more"):
        ASKED[asked](draws)
    assert len(sampler.asked) == 1


@pytest.mark.parametrize("parts", [(4,), (100,), (1, 9), (2, 2), (1,), (2,)], ids=repr)
def test_the_wrong_size_is_refused(parts: tuple[int, ...]) -> None:
    for ask in ("noise", "noise in pieces"):
        with pytest.raises(PrivacyError, match=r"noise on 3 values|nothing more"):
            ASKED[ask](draws_of(*(Laplace(size=size, scale=1.0) for size in parts)))
    with pytest.raises(PrivacyError, match="noise on 0 values"):
        draws_of(*(Laplace(size=size, scale=1.0) for size in parts)).add(np.zeros(0, dtype=np.int64))


def test_parts_that_are_left_over_are_refused() -> None:
    draws = draws_of(Laplace(size=3, scale=1.0), Selection(rule="exponential", scale=1.0, count=2))
    with pytest.raises(PrivacyError, match="the end of the release"):
        draws.finish()
    draws.add(THREE)
    draws.select([1, 2])
    with pytest.raises(PrivacyError, match="the end of the release"):
        draws.finish()
    draws.select([1, 2])
    draws.finish()


@pytest.mark.parametrize("values", [THREE.astype(np.float64), THREE.astype(object), THREE > 0], ids=lambda v: v.dtype)
def test_noise_goes_on_integers_only(values) -> None:
    for ask in ("add", "add_in_pieces"):
        with pytest.raises(PrivacyError, match=f"noise on {values.dtype} values"):
            getattr(draws_of(Laplace(size=3, scale=1.0)), ask)(values)


def test_long_lists_are_noised_in_pieces_by_the_same_law() -> None:
    sampler = Listening()
    draws = draws_of(Laplace(size=600_000, scale=3.0), sampler=sampler)
    noise = draws.add_in_pieces(np.zeros(600_000, dtype=np.int64))
    assert [size for _, size, _ in sampler.asked] == [1 << 18, 1 << 18, 600_000 - (1 << 19)]
    assert np.std(noise) == pytest.approx(math.sqrt(2) * 3, rel=0.03)


# -- before the charge -----------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["noise", "noise in pieces", "a choice", "choices", "a pattern", "cells"])
def test_nothing_but_random_bits_can_be_had_before_the_charge(asked: str) -> None:
    (part,) = [part for part, names in FITTING.items() if asked in names and not isinstance(part, KNorm)]
    sampler = Listening()
    draws = draws_of(RandomBits(), part, sampler=sampler, paid=False)
    draws.random_integers().below(THREE + 10)
    with pytest.raises(PrivacyError, match="Charge the ledger first"):
        ASKED[asked](draws)
    assert sampler.asked == []
    draws._paid = True
    ASKED[asked](draws)
    draws.finish()
    assert sampler.asked


def test_no_coin_can_be_had_before_the_charge() -> None:
    sampler = Listening()
    draws = draws_of(Repeat(parts=(Laplace(size=3, scale=1.0),), one_in=9), sampler=sampler, paid=False)
    with pytest.raises(PrivacyError):
        draws.gives_up()
    assert sampler.asked == []


def test_random_integers_are_no_way_to_noise() -> None:
    source = draws_of(RandomBits()).random_integers()
    assert isinstance(source, RandomIntegers)
    assert [name for name in dir(source) if not name.startswith("_")] == ["below"]
    drawn = source.below(np.array([1, 2, 3]))
    np.testing.assert_array_equal(drawn, SeededNoise(0).below(np.array([1, 2, 3])))


def test_random_bits_are_the_keyed_ones_of_the_sampler() -> None:
    bits = draws_of(RandomBits()).random_bits()
    np.testing.assert_array_equal(bits.ones(0, 50), SeededNoise(0).keyed_bits().ones(0, 50))


# -- scales ----------------------------------------------------------------------------------------

OPEN = {
    "noise": (Laplace(size=3), lambda draws, scale: draws.add(THREE, scale=scale)),
    "choice": (Selection(rule="exponential"), lambda draws, scale: draws.select([1, 2], scale=scale)),
    "choices": (Selection(rule="exponential"), lambda draws, scale: draws.select_each([[1, 2]], scale=scale)),
    "pattern": (Selection(rule="exponential"), lambda draws, scale: draws.pattern([CHAIN], scale=scale)),
}


@pytest.mark.parametrize("name", OPEN)
def test_an_open_scale_is_given_when_it_is_drawn(name: str) -> None:
    part, ask = OPEN[name]
    sampler = Listening()
    ask(draws_of(part, sampler=sampler), 7.5)
    assert sampler.asked[0][2] == 7.5
    with pytest.raises(PrivacyError, match="no scale"):
        ask(draws_of(part), None)
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(PrivacyError, match="a scale of"):
            ask(draws_of(part), wrong)


@pytest.mark.parametrize("name", OPEN)
def test_a_planned_scale_cannot_be_changed(name: str) -> None:
    part, ask = OPEN[name]
    planned = type(part)(**{**vars(part), "scale": 3.0})
    sampler = Listening()
    ask(draws_of(planned, sampler=sampler), None)
    assert sampler.asked[0][2] == 3.0
    for given in (0.0, 1.0, 3.0):
        with pytest.raises(PrivacyError, match="a scale of its own"):
            ask(draws_of(planned), given)


def test_long_lists_have_planned_scales_only() -> None:
    with pytest.raises(PrivacyError, match="no scale"):
        draws_of(Laplace(size=3)).add_in_pieces(THREE)


# -- thresholds ------------------------------------------------------------------------------------


def test_cells_with_rows_are_noised_and_empty_ones_found() -> None:
    part = Threshold(size=10**9, scale=2.0, threshold=40)
    noisy, found = draws_of(part, sampler=SeededNoise(3)).passing([5, 0, 7], 10)
    same = SeededNoise(3)
    values = np.array([5, 0, 7] + [0] * 7)
    assert noisy == same.laplace(values, 2.0).tolist()
    assert found == lifted(10**9, 40, 2.0, same)
    noisy, _ = draws_of(part, sampler=SeededNoise(3)).passing([5, 0, 7], 2)
    assert len(noisy) == 3


# -- repetitions -----------------------------------------------------------------------------------


def test_a_repetition_is_drawn_so_many_times() -> None:
    sampler = Listening()
    twice = Repeat(parts=(Laplace(size=3, scale=1.0), Selection(rule="exponential", scale=2.0)), times=2)
    draws = draws_of(twice, Laplace(size=3, scale=5.0), sampler=sampler)
    for _ in range(2):
        draws.add(THREE)
        with pytest.raises(PrivacyError):
            draws.finish()
        draws.select([1, 2])
    draws.add(THREE)
    draws.finish()
    assert [scale for _, _, scale in sampler.asked] == [1.0, 2.0, 1.0, 2.0, 5.0]


def test_a_repetition_can_neither_be_left_early_nor_go_on() -> None:
    twice = Repeat(parts=(Laplace(size=3, scale=1.0),), times=2)
    draws = draws_of(twice, Selection(rule="exponential", scale=1.0))
    draws.add(THREE)
    with pytest.raises(PrivacyError):
        draws.select([1, 2])
    draws = draws_of(twice)
    draws.add(THREE)
    draws.add(THREE)
    with pytest.raises(PrivacyError, match="nothing more"):
        draws.add(THREE)
    for early in ("accept", "gives_up"):
        with pytest.raises(PrivacyError):
            getattr(draws_of(twice), early)()


def rerun(sampler=None) -> Draws:
    return draws_of(
        Repeat(parts=(Laplace(size=3, scale=1.0),), one_in=9),
        Laplace(size=3, scale=5.0),
        sampler=sampler or Listening(),
    )


def test_a_repetition_with_a_coin_goes_on_until_a_draw_is_accepted() -> None:
    sampler = Listening()
    draws = rerun(sampler)
    for _ in range(4):
        draws.add(THREE)
        assert draws.gives_up() is False
    draws.add(THREE)
    draws.accept()
    draws.add(THREE)
    draws.finish()
    assert sampler.asked == [*[("laplace", 3, 1.0), ("coin", 9)] * 4, ("laplace", 3, 1.0), ("laplace", 3, 5.0)]


def test_a_repetition_with_a_coin_is_not_accepted_before_it_is_drawn() -> None:
    with pytest.raises(PrivacyError, match="an end of repetitions"):
        rerun().accept()
    with pytest.raises(PrivacyError, match="random stopping"):
        rerun().gives_up()


def test_what_the_coin_has_let_go_is_not_accepted() -> None:
    draws = rerun()
    draws.add(THREE)
    assert not draws.gives_up()
    with pytest.raises(PrivacyError, match="an end of repetitions"):
        draws.accept()
    draws.add(THREE)
    draws.accept()


def test_every_new_draw_needs_a_coin_and_one_only() -> None:
    draws = rerun()
    draws.add(THREE)
    with pytest.raises(PrivacyError, match="another draw without random stopping"):
        draws.add(THREE)
    draws = rerun()
    draws.add(THREE)
    draws.gives_up()
    with pytest.raises(PrivacyError, match="random stopping"):
        draws.gives_up()


def test_whoever_gives_up_cannot_draw_again() -> None:
    class Heads(Listening):
        def one_in(self, count):
            return True

    draws = rerun(Heads())
    draws.add(THREE)
    assert draws.gives_up()
    with pytest.raises(PrivacyError):
        draws.add(THREE)


def test_one_repetition_may_follow_another() -> None:
    own = Repeat(parts=(Laplace(size=3, scale=1.0),), one_in=9)
    sampler = Listening()
    draws = draws_of(own, own, sampler=sampler)
    for _ in range(2):
        draws.add(THREE)
        draws.accept()
    draws.finish()
    assert sampler.asked == [("laplace", 3, 1.0)] * 2


# -- the final plan --------------------------------------------------------------------------------


def test_the_final_event_takes_the_place_of_the_first() -> None:
    sampler = Listening()
    draws = draws_of(RandomBits(), Laplace(size=1, scale=1.0), sampler=sampler, paid=False)
    draws.random_bits()
    final = Event("test", 1.0, parts=(RandomBits(), Laplace(size=3, scale=2.0)))
    draws.switch(final)
    assert draws.event is final
    draws._paid = True
    draws.add(THREE)
    draws.finish()
    assert sampler.asked == [("laplace", 3, 2.0)]


def test_random_bits_of_repetitions_are_not_taken_again() -> None:
    first = (Repeat(parts=(RandomBits(),), times=3), Laplace(size=1, scale=1.0))
    sampler = Listening()
    draws = draws_of(*first, sampler=sampler, paid=False)
    draws.random_bits()
    draws.random_bits()
    draws.switch(Event("test", 1.0, parts=(*first[:1], Laplace(size=3, scale=2.0))))
    draws.random_bits()
    draws._paid = True
    draws.add(THREE)
    draws.finish()
    assert sampler.asked == [("laplace", 3, 2.0)]


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (Laplace(size=3, scale=1.0),),
        (RandomBits(purpose="another"), Laplace(size=3, scale=1.0)),
        (Laplace(size=3, scale=1.0), RandomBits()),
    ],
    ids=repr,
)
def test_random_bits_that_were_taken_stay_in_the_final_event(parts: tuple) -> None:
    draws = draws_of(RandomBits(), Laplace(size=3, scale=1.0), paid=False)
    draws.random_bits()
    with pytest.raises(PrivacyError):
        draws.switch(Event("test", 1.0, parts=parts))


def test_what_was_charged_is_what_is_drawn() -> None:
    draws = draws_of(Laplace(size=3, scale=1.0))
    with pytest.raises(PrivacyError, match="Plan first, then charge"):
        draws.switch(Event("test", 1.0, parts=(Laplace(size=3, scale=0.1),)))


# -- simulations -----------------------------------------------------------------------------------


def test_one_recipe_drawn_over_and_over() -> None:
    parts = (Laplace(size=1, scale=2.0), KNorm(norm="linf", size=2, scale=3.0))
    found = noised(SeededNoise(6), THREE, parts)
    np.testing.assert_array_equal(found, draws_of(*parts, sampler=SeededNoise(6)).add(THREE))


@pytest.mark.parametrize(
    "parts", [(), (Laplace(size=2, scale=1.0),), (Laplace(size=4, scale=1.0),), (Laplace(size=3),)], ids=repr
)
def test_simulations_noise_every_value(parts: tuple) -> None:
    with pytest.raises(PrivacyError):
        noised(SeededNoise(6), THREE, parts)


# -- after a failure -------------------------------------------------------------------------------


class Failing(SeededNoise):
    """Fails in the second of several parts, or at once."""

    def linf(self, values, scale):
        raise MemoryError


WIDE, NARROW = Laplace(size=3, scale=100.0), Laplace(size=3, scale=0.01)
FAILURES = {
    "another size": lambda draws: draws.add(THREE[:2]),
    "a scale of its own": lambda draws: draws.add(THREE, scale=5.0),
    "a float in pieces": lambda draws: draws.add_in_pieces(THREE * 1.0),
    "an end in the middle": lambda draws: draws.add(np.arange(5)),
}


@pytest.mark.parametrize("failing", FAILURES.values(), ids=FAILURES)
def test_after_a_draw_that_failed_the_next_part_is_not_handed_out(failing) -> None:
    draws = draws_of(WIDE, NARROW)
    with pytest.raises(PrivacyError):
        failing(draws)
    for going_on in (lambda: draws.add(THREE), lambda: draws.add_in_pieces(THREE), draws.finish):
        with pytest.raises(PrivacyError, match="after a draw that failed"):
            going_on()


def test_nothing_is_drawn_after_a_sampler_has_failed() -> None:
    draws = draws_of(KNorm(norm="linf", size=3, scale=9.0), NARROW, sampler=Failing(0))
    with pytest.raises(MemoryError):
        draws.add(THREE)
    with pytest.raises(PrivacyError, match="after a draw that failed"):
        draws.add(THREE)
