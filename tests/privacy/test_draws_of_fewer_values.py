"""Noise on fewer values than planned, where a choice of the same event decides how many there are."""

from __future__ import annotations

import numpy as np
import pytest

from privfit.privacy import Draws, Event, PrivacyError, SeededNoise
from privfit.privacy.parts import CANDIDATE, CERTIFICATE, KNorm, Laplace, RoundedGaussian, Selection


def draws_of(*parts: Laplace | KNorm | RoundedGaussian) -> Draws:
    return Draws(Event("a test", 1.0, parts=parts), SeededNoise(0), paid=True)


@pytest.mark.parametrize("kind", [Laplace, RoundedGaussian])
def test_independent_noise_is_drawn_on_as_many_values_as_there_are(kind: type) -> None:
    draws, values = draws_of(kind(size=9, scale=3.0)), np.arange(4)
    found = draws.add(values, at_most=True)
    draws.finish()
    part = kind(size=4, scale=3.0)
    np.testing.assert_array_equal(found, part.added(SeededNoise(0), values, 3.0))


def test_fewer_values_are_refused_where_nobody_says_that_there_may_be() -> None:
    with pytest.raises(PrivacyError, match="asked for noise on 4 values"):
        draws_of(Laplace(size=9, scale=3.0)).add(np.arange(4))


def test_more_values_than_planned_are_refused() -> None:
    with pytest.raises(PrivacyError, match="nothing more"):
        draws_of(Laplace(size=3, scale=3.0)).add(np.arange(4), at_most=True)


def test_noise_that_depends_on_all_values_is_never_drawn_on_fewer() -> None:
    with pytest.raises(PrivacyError, match="asked for noise on 4 values"):
        draws_of(KNorm(size=9, scale=3.0, norm="linf")).add(np.arange(4), at_most=True)


def test_no_values_are_no_reason_to_skip_a_part() -> None:
    with pytest.raises(PrivacyError, match="asked for noise on 0 values"):
        draws_of(Laplace(size=9, scale=3.0)).add(np.zeros(0, dtype=np.int64), at_most=True)


def test_a_report_tells_of_one_candidate_and_of_no_certificate() -> None:
    quiet = Laplace(size=3, scale=1.0, sensitivity=2, purpose=CANDIDATE)
    certificate = Laplace(size=3, scale=9.0, sensitivity=4, purpose=CERTIFICATE)
    told = Laplace(size=3, scale=5.0, sensitivity=7)
    choice = Selection(rule="permute-and-flip", scale=2.0, purpose="choice of a candidate")
    event = Event("a test", 1.0, parts=(quiet, certificate, told, certificate, choice))
    assert event.main == (told,)
    assert (event.n_values, event.sensitivity, event.scale) == (3, 7, 5.0)
