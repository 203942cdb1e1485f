"""Seeded results stay what they were, estimator by estimator and setting by setting."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

from tests.conformance.flow_settings import all_settings
from tests.conformance.frozen import FIXTURE, frozen, is_function, named_settings

SETTINGS = named_settings()
KEPT = json.loads(FIXTURE.read_text(encoding="utf-8"))
EXACTLY = os.environ.get("PRIVFIT_EXACT") == "1"
"""Bit by bit on the machine that wrote the fixture; elsewhere another BLAS may round otherwise."""
TOLERANCE = 1e-6
LOOSE = {"192 LinearSVC": 1e-3, "299 PrivateERM": 1e-4}
"""Minima with hardly any ridge are found as far as the noise needs it, and not to the last digits."""
LEAST = 1e-12
"""Gaps between two objectives are rounding errors themselves."""


def test_every_setting_is_kept() -> None:
    assert list(SETTINGS) == list(KEPT)


def test_no_two_settings_have_one_place() -> None:
    places = [name.split()[0] for name in SETTINGS]
    assert len(set(places)) == len(places) == sum(not is_function(one) for one in all_settings())


@pytest.mark.parametrize("name", SETTINGS)
def test_seeded_results_are_what_they_were(name: str) -> None:
    found = json.loads(json.dumps(frozen(SETTINGS[name], int(name.split()[0]))))
    if EXACTLY:
        assert found == KEPT[name]
    assert list(found) == list(KEPT[name])
    for part, kept in KEPT[name].items():
        _assert_close(found[part], kept, f"{name}: {part}", LOOSE.get(name, TOLERANCE))


def _assert_close(found: Any, kept: Any, what: str, tolerance: float = TOLERANCE) -> None:
    if not isinstance(kept, list):
        assert found == pytest.approx(kept, rel=tolerance) if isinstance(kept, float) else found == kept, what
        return
    if kept and isinstance(kept[0], list):
        assert found[0] == kept[0], f"{what}: shapes"
        found, kept = [*found[1], found[2]], [*kept[1], kept[2]]
    size = max(float(np.nan_to_num(float(kept[-1] or 0))), LEAST / tolerance)  # NaN: a curve beyond what is known
    one, other = (np.array([float(x or 0) for x in values]) for values in (found, kept))
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * size, err_msg=what)


def test_a_changed_number_is_seen() -> None:
    name = next(iter(KEPT))
    changed = json.loads(json.dumps(KEPT[name]["coef_"]))
    changed[1][0] = repr(float(changed[1][0]) + 1e-3)
    with pytest.raises(AssertionError):
        _assert_close(changed, KEPT[name]["coef_"], name)
