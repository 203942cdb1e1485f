"""An audit's noise is for the audit's own fits: those of other threads draw secret noise while it runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import polars as pl

import privfit as pf
from privfit.audit.recording import RecordingNoise, noise_from
from privfit.models import private


def test_fits_of_other_threads_keep_their_noise() -> None:
    source = RecordingNoise(3)
    with noise_from(source), ThreadPoolExecutor(1) as others:
        assert private.noise_source(None) is source
        assert others.submit(private.noise_source, None).result() is not source
        table = {"a": [0.1, 0.4, 0.9], "y": [0.0, 0.5, 1.0]}
        schema = pf.Schema([pf.Numeric("a", 0, 1)], pf.Numeric("y", 0, 1))
        model = pf.LinearRegression(1.0, schema=schema, ledger=pf.Ledger(epsilon=1.0))
        others.submit(model.fit, pl.DataFrame(table)).result()
    assert not source.calls
