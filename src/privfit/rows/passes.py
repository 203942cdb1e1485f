"""One pass over chunks of rows: what threads make of them in order, and sums of it whose rounding stays small."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Piece = TypeVar("Piece")
Made = TypeVar("Made")


def in_order(
    pool: ThreadPoolExecutor, task: Callable[[Piece], Made], chunks: Iterator[Piece], ahead: int
) -> Iterator[Made]:
    """What a task makes of the chunks, in their order, with few of them in work at a time."""
    pending: deque[Future[Made]] = deque()
    broken: Exception | None = None
    while True:
        try:
            chunk = next(chunks)
        except StopIteration:
            break
        except Exception as error:  # what rows before it have to say comes first, however far ahead was read
            broken = error
            break
        pending.append(pool.submit(task, chunk))
        if len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
    if broken is not None:
        raise broken


def pairwise_sum(parts: Iterator[list[Floats]]) -> list[Floats]:
    """The sum of the parts, added two by two, so that rounding grows with the logarithm of their number only."""
    waiting: list[tuple[int, list[Floats]]] = []
    for part in parts:
        height, total = 0, part
        while waiting and waiting[-1][0] == height:
            height, total = height + 1, added_in_place(waiting.pop()[1], total)
        waiting.append((height, total))
    total = waiting.pop()[1]
    while waiting:
        total = added_in_place(waiting.pop()[1], total)
    return total


def added_in_place(ones: list[Floats], others: list[Floats]) -> list[Floats]:
    """The sums of two parts, written over the first."""
    for one, other in zip(ones, others, strict=True):
        one += other
    return ones
