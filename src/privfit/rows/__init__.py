"""Rows: tables encoded into bounded integers, and the one way to read them."""

from privfit.rows.cached_design import CachedDesign, SampledDesign
from privfit.rows.contingency import CellGrid, cell_geometry, count_cells
from privfit.rows.design_subset import DesignSubset
from privfit.rows.encoding import Encoder, level_codes, within_bounds
from privfit.rows.holdout import PartRows, divided, divided_once
from privfit.rows.interactions import COUNT_UNIT, InteractionCells, Interactions, Pair, is_alone
from privfit.rows.kernels import Kernel
from privfit.rows.level_counts import count_levels
from privfit.rows.margins import MarginRows, losses_of
from privfit.rows.open_levels import OpenCounts, count_open_levels
from privfit.rows.paired_levels import count_paired_levels
from privfit.rows.partition import PartitionedRows
from privfit.rows.plain import PlainRows
from privfit.rows.points import Points, on_lattice, point_geometry, scaled_points
from privfit.rows.prediction import feature_scores, linear_scores, quadratic_scores
from privfit.rows.public import PublicRows
from privfit.rows.response_moments import MOMENT_UNIT, response_moments
from privfit.rows.row_weights import RowWeights
from privfit.rows.rows import Rows, count_rows, on_progress, report_progress, rows_to_plan_for
from privfit.rows.sides import one_against_rest
from privfit.rows.survival_times import SQUARE_STEPS, SignedTimes, count_by_target, signed_target, sum_of_squares
from privfit.rows.target_sums import (
    AMOUNT_STEPS,
    SCORE_UNIT,
    AmountSums,
    count_residuals_up_to,
    count_up_to,
    sum_of_residuals,
    weighed_rows,
    weights_of_classes,
)
from privfit.rows.used_rows import used_rows
from privfit.rows.worker_cells import Residuals
from privfit.rows.workers import memory_bytes, one_blas_thread, thread_count

__all__ = [
    "AMOUNT_STEPS",
    "COUNT_UNIT",
    "MOMENT_UNIT",
    "SCORE_UNIT",
    "SQUARE_STEPS",
    "AmountSums",
    "CachedDesign",
    "CellGrid",
    "DesignSubset",
    "Encoder",
    "InteractionCells",
    "Interactions",
    "Kernel",
    "MarginRows",
    "OpenCounts",
    "Pair",
    "PartRows",
    "PartitionedRows",
    "PlainRows",
    "Points",
    "PublicRows",
    "Residuals",
    "RowWeights",
    "Rows",
    "SampledDesign",
    "SignedTimes",
    "cell_geometry",
    "count_by_target",
    "count_cells",
    "count_levels",
    "count_open_levels",
    "count_paired_levels",
    "count_residuals_up_to",
    "count_rows",
    "count_up_to",
    "divided",
    "divided_once",
    "feature_scores",
    "is_alone",
    "level_codes",
    "linear_scores",
    "losses_of",
    "memory_bytes",
    "on_lattice",
    "on_progress",
    "one_against_rest",
    "one_blas_thread",
    "point_geometry",
    "quadratic_scores",
    "report_progress",
    "response_moments",
    "rows_to_plan_for",
    "scaled_points",
    "signed_target",
    "sum_of_residuals",
    "sum_of_squares",
    "thread_count",
    "used_rows",
    "weighed_rows",
    "weights_of_classes",
    "within_bounds",
]
