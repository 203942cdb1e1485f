"""Rows: tables encoded into bounded whole numbers, and the one way to read them."""

from privfit.rows.design import linear_scores
from privfit.rows.encoding import Encoder
from privfit.rows.rows import Kernel, Rows, on_progress

__all__ = ["Encoder", "Kernel", "Rows", "linear_scores", "on_progress"]
