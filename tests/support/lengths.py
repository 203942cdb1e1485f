"""How long a move is in the norm that noise protects, written once more."""

from __future__ import annotations

import numpy as np


def length(noise: str, move: np.ndarray, widths: tuple[int, ...] = ()) -> float:
    """The length of a move; `widths` are the sizes of blocks, for the block norm."""
    sizes = np.abs(np.asarray(move, dtype=float))
    match noise:
        case "laplace":
            return float(sizes.sum())
        case "linf":
            return float(sizes.max())
        case "l2":
            return float(np.sqrt((sizes**2).sum()))
        case "blocks":
            assert sum(widths) == len(sizes)
            return max(float(block.sum()) for block in np.split(sizes, np.cumsum(widths)[:-1]))
    raise AssertionError(noise)
