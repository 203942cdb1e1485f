"""Interaction terms of a model: the names of their cells, and what a file holds of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privfit.models.model_files import ModelFileError
from privfit.models.report import JSONObject
from privfit.rows import Interactions, Pair
from privfit.schema import Geometry


def cell_names(geometry: Geometry, pairs: Sequence[Pair]) -> list[NDArray[np.object_]]:
    """A name for every cell of every pair."""
    interactions = Interactions(geometry)
    return [np.array(interactions.names(pair), dtype=object) for pair in pairs]


def pair_facts(geometry: Geometry, pairs: Sequence[Pair]) -> JSONObject:
    """What a saved model holds of its interaction terms."""
    interactions = Interactions(geometry)
    if not pairs:
        return {}
    return {"pairs": [list(pair) for pair in pairs], "cells": [interactions.n_cells(pair) for pair in pairs]}


def restored_pairs(geometry: Geometry, facts: JSONObject, coefficients: int) -> tuple[Pair, ...]:
    """The pairs of a model file, if they are those of its schema and number of coefficients."""
    if "pairs" not in facts:
        return ()
    interactions, cells = Interactions(geometry), facts["cells"]
    found = cast("tuple[Pair, ...]", tuple(map(tuple, facts["pairs"])))
    known = {*interactions.pairs(coefficients), *interactions.alone()}
    whole = all(isinstance(place, int) for pair in found for place in pair)
    fitting = (
        whole
        and len(set(found)) == len(found)
        and known.issuperset(found)
        and [interactions.n_cells(pair) for pair in found] == cells
    )
    if not fitting or len(geometry.feature_names) + sum(cells) != coefficients:
        raise ModelFileError(
            "The tables of a model file do not go with its schema and coefficients. It was changed, or saved by "
            "another version: fit again."
        )
    return found
