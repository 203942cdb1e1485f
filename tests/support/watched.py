"""Noise, ledger and tables that write down what they were asked, in one log, and otherwise do what the real ones do."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import privfit as pf
from privfit.privacy import SeededNoise

Step = tuple[Any, ...]


@dataclass
class Log:
    """What a fit asked of noise, ledger and table, in order; and what noise answered."""

    steps: list[Step] = field(default_factory=list)
    asked: list[Step] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def note(self, *step: Any) -> None:
        self.steps.append(step)

    @property
    def charged(self) -> bool:
        return any(step[0] == "charge" for step in self.steps)


class WatchedNoise:
    """A noise source that logs kind, shape and scale of every call, and never a value.

    With `told`, the answers of another run, it answers the same: whatever is built from noisy values alone is then the
    same too, bit by bit. That covers control flow that depends on noise by design: reruns until an objective is
    bounded, choices, the number of empty cells that pass. The real sampler is asked all the same, with the values of
    this run, so that a sampler which fails on some values shows. Once the calls differ from those of the other run, it
    draws its own.
    """

    private = True

    def __init__(self, log: Log, told: Log | None = None, source: Any = None, counts_rows: bool = True) -> None:
        self._log, self._told = log, told
        self._counts_rows = counts_rows
        """Whether the number of rows is public.

        Where it is not, a coin for every row is drawn as often as there are rows: that shows in nothing but time.
        """
        self._source = SeededNoise(20260728) if source is None else source

    def _answer(self, draw: Callable[[], Any], *asked: Any) -> Any:
        place = len(self._log.answers)
        own = draw()
        self._log.note("noise", *asked)
        if self._told is not None and place < len(self._told.answers):
            own = copy.deepcopy(self._told.answers[place]) if self._told.asked[place] == asked else own
        self._log.asked.append(asked)
        self._log.answers.append(copy.deepcopy(own))
        return own

    def __getattr__(self, kind: str) -> Any:
        if kind not in ("laplace", "gaussian", "linf", "l2", "normal"):
            raise AttributeError(kind)
        return lambda values, scale: self._answer(
            lambda: getattr(self._source, kind)(values, scale), kind, values.dtype.str, values.shape, scale
        )

    def block_norm(self, values: Any, scale: float, widths: Any) -> Any:
        return self._answer(
            lambda: self._source.block_norm(values, scale, widths), "block_norm", values.shape, scale, tuple(widths)
        )

    def one_in(self, count: int) -> bool:
        return bool(self._answer(lambda: self._source.one_in(count), "one_in", count))

    def select(self, scores: Any, scale: float) -> int:
        return int(self._answer(lambda: self._source.select(scores, scale), "select", len(scores), scale))

    def select_each(self, menus: Any, scale: float, rule: str) -> list[int]:
        sizes = tuple(len(menu) for menu in menus)
        return list(
            self._answer(lambda: self._source.select_each(menus, scale, rule), "select_each", sizes, scale, rule)
        )

    def pattern(self, chains: Any, scale: float) -> Any:
        return self._answer(lambda: self._source.pattern(chains, scale), "pattern", len(chains), scale)

    def geometric(self, size: int, scale: float) -> Any:
        return self._answer(lambda: self._source.geometric(size, scale), "geometric", size, scale)

    def below(self, limits: Any) -> Any:
        shape = np.shape(limits) if self._counts_rows else ()
        drawn = self._answer(lambda: self._source.below(limits), "below", shape, tuple(np.unique(limits).tolist()[:8]))
        return drawn if np.shape(drawn) == np.shape(limits) else self._source.below(limits)

    def keyed_bits(self) -> Any:
        return self._answer(self._source.keyed_bits, "keyed_bits")


class WatchedLedger(pf.Ledger):
    """A ledger that logs what it is asked."""

    def __init__(self, log: Log, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._log = log

    def check(self, event: Any, *args: Any, **kwargs: Any) -> None:
        self._log.note("check", event, args, sorted(kwargs.items()))
        super().check(event, *args, **kwargs)

    def charge(self, event: Any, *args: Any, **kwargs: Any) -> Any:
        made = super().charge(event, *args, **kwargs)
        self._log.note("charge", event, args, sorted(kwargs.items()))
        return made


def watch_table(table: Any, log: Log, n_rows: int) -> Any:
    """The same table, which logs every pass: how many rows more or fewer than there are it handed out."""
    batches = table.batches

    def counted(columns: Any, positions: Any, rows: int) -> Iterator[Any]:
        log.note("pass", tuple(column.name for column in columns))
        seen = 0
        for batch in batches(columns, positions, rows):
            seen += len(batch[0])
            yield batch
        log.note("end of pass", seen - n_rows)

    table.batches = counted
    return table
