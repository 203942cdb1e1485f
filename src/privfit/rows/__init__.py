"""Rows: tables encoded into bounded whole numbers, and the one way to read them."""

from privfit.rows.cells import Cells, Grid, cell_geometry
from privfit.rows.crossed import CellRows, Crossing, Pair, is_alone
from privfit.rows.dealt import DealtRows
from privfit.rows.design import feature_scores, linear_scores
from privfit.rows.encoding import Encoder
from privfit.rows.kept import Features, KeptRows, PartOfRows, SampledRows
from privfit.rows.margins import MarginRows, losses_of
from privfit.rows.plain import PlainRows
from privfit.rows.points import Points, on_lattice, point_geometry, scaled_points
from privfit.rows.public import PublicRows
from privfit.rows.rows import Kernel, Rows, count_rows, on_progress, one_blas_thread

__all__ = [
    "CellRows",
    "Cells",
    "Crossing",
    "DealtRows",
    "Encoder",
    "Features",
    "Grid",
    "KeptRows",
    "Kernel",
    "MarginRows",
    "Pair",
    "PartOfRows",
    "PlainRows",
    "Points",
    "PublicRows",
    "Rows",
    "SampledRows",
    "cell_geometry",
    "count_rows",
    "feature_scores",
    "is_alone",
    "linear_scores",
    "losses_of",
    "on_lattice",
    "on_progress",
    "one_blas_thread",
    "point_geometry",
    "scaled_points",
]
