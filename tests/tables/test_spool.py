"""What passes by once is kept in a temporary file, of which nothing is left."""

from __future__ import annotations

import gc
import warnings

import numpy as np

from privfit.schema import Numeric
from privfit.tables.spool import Spool


def test_batches_are_read_again_and_the_file_is_closed_with_its_table() -> None:
    """A file that is left to the collector warns at some later time: in a fit on other rows, where it would show."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = Spool([Numeric("x", 0, 9)], iter([[np.arange(5.0)], [np.arange(5.0, 8.0)]]))
        assert kept.rows == 8
        assert [batch[0].tolist() for batch in kept.read([Numeric("x", 0, 9)], 4)] == [[0, 1, 2, 3], [4], [5, 6, 7]]
        file = kept._file._file
        del kept
        gc.collect()
    assert file.closed
