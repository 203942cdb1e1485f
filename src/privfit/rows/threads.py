"""Threads of our own, with BLAS held to one each: they share the cores, or those of a worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Given = TypeVar("Given")
Made = TypeVar("Made")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Our own threads share the cores; BLAS threads on top of them only get in each other's way."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


def in_order(
    pool: ThreadPoolExecutor, task: Callable[[Given], Made], pieces: Iterator[Given], ahead: int
) -> Iterator[Made]:
    """What a task makes of the pieces, in their order, with few of them in work at a time."""
    pending: deque[Future[Made]] = deque()
    broken: Exception | None = None
    while True:
        try:
            piece = next(pieces)
        except StopIteration:
            break
        except Exception as error:  # what rows before it have to say comes first, however far ahead was read
            broken = error
            break
        pending.append(pool.submit(task, piece))
        if len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
    if broken is not None:
        raise broken
