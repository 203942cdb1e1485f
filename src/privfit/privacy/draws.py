"""Draws: the randomness of one release, handed out part by part as its event says, while nobody is warned of anything.

A mechanism holds no sampler. It asks for the next part, and what no part describes cannot be drawn. Before the event
is paid only random bits can be had, which decide how rows are read and hide nothing.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TextIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.errors import PrivacyError
from privfit.privacy.event import Event
from privfit.privacy.parts import (
    Additive,
    HeldThreshold,
    KNorm,
    Laplace,
    Part,
    RandomBits,
    Repeat,
    Selection,
    Threshold,
)
from privfit.privacy.samplers.norms import Source
from privfit.privacy.samplers.patterns import Chain
from privfit.privacy.samplers.selection import KeyedBits
from privfit.privacy.samplers.sources import Sampler
from privfit.privacy.samplers.threshold import laplace, lifted, passing_held

Integers = NDArray[np.int64]
Kind = TypeVar("Kind", bound=Part)


class Draws:
    """The parts of one event, in order, drawn from one sampler. After a draw that failed there are no others."""

    def __init__(self, event: Event, sampler: Sampler, *, paid: bool = False) -> None:
        self.event = event
        self._sampler = sampler
        self._left: deque[Part] = deque(event.parts)
        self._taken: list[Part] = []
        self._paid = paid
        self._half_way = False
        self._begun: Repeat | None = None
        self._accepts = self._goes_on = False
        """Of a repetition with random stopping that has begun: whether its parts were drawn and nothing is decided
        yet, and whether it may go on.
        """

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """One request. One that fails after it has taken a part is the last: a mechanism that went on would get the
        next part, whose noise is for something else.
        """
        if self._half_way:
            raise self._wrong("more after a draw that failed", self._left[0] if self._left else None)
        yield
        self._half_way = False

    @contextmanager
    def charged(self) -> Iterator[None]:
        """The event is charged: noise can be drawn. At the end every part must have been drawn, and until then nobody
        is warned: a warning would reveal something about the rows.
        """
        self._paid = True
        with quietly():
            yield
        self.finish()

    def switch(self, event: Event) -> None:
        """Go on with another event, that of the final plan; random bits that were taken already are not taken again."""
        with self._whole():
            if self._paid:
                raise PrivacyError(
                    f"{self.event.mechanism!r} was charged and asked for another event. Plan first, then charge."
                )
            taken, self._taken = self._taken, []
            self.event, self._left, self._begun = event, deque(event.parts), None
            for part in taken:
                if self._next(RandomBits) != part:
                    raise self._wrong(f"{part.kind} for {part.purpose!r}, taken for an earlier plan", None)

    # -- what a mechanism asks for -----------------------------------------------------------------

    def add(self, values: Integers, *, scale: float | None = None, at_most: bool = False) -> Integers:
        """The values with the noise of the next part; with that of several parts, where it takes several to cover them.

        `scale` is given for a part whose scale follows from values released before, and only then. `at_most` says that
        there may be fewer values than the part has, because a choice made earlier in the same event decides how many
        there are: for noise that is independent from value to value, of which the rest is then not drawn.
        """
        with self._whole():
            if values.dtype.kind not in "iu":  # noise on floats hides less than it should
                raise self._wrong(f"noise on {values.dtype} values", self._left[0] if self._left else None)
            flat, start = values.ravel(), 0
            noisy: list[Integers] = []
            while start < flat.size or not noisy:
                part = self._next(Additive)
                piece = flat[start : start + part.size]
                fewer = at_most and 0 < piece.size < part.size and not isinstance(part, KNorm)
                if piece.size != part.size and not fewer:
                    raise self._wrong(f"noise on {flat.size} values", part)
                noisy.append(part.added(self._sampler, piece, self._scale(part.scale, scale, part)))
                start += part.size
            found = noisy[0] if len(noisy) == 1 else np.concatenate(noisy)
            return np.asarray(found.reshape(values.shape), dtype=np.int64)

    def add_in_pieces(self, values: Integers) -> Integers:
        """A long list of values with the independent noise of the next part, drawn some at a time to save memory."""
        with self._whole():
            part = self._next(Laplace)
            if values.dtype.kind not in "iu":
                raise self._wrong(f"noise on {values.dtype} values", part)
            if values.shape != (part.size,):
                raise self._wrong(f"noise on {values.size} values", part)
            return laplace(self._sampler, values, self._scale(part.scale, None, part))

    def select(self, scores: Sequence[int], *, scale: float | None = None) -> int:
        """The place of one of the scores."""
        return self.select_each([scores], scale=scale)[0]

    def select_each(self, menus: Sequence[Sequence[int]], *, scale: float | None = None) -> list[int]:
        """The place of one of the scores of every menu: together one choice."""
        with self._whole():
            part = self._next_selection()
            return self._sampler.select_each(menus, self._scale(part.scale, scale, part), part.rule)

    def pattern(self, chains: Sequence[Chain], *, scale: float | None = None) -> tuple[int, tuple[int, ...]]:
        """One of the chains, and a sign for each of its levels."""
        with self._whole():
            part = self._next_selection()
            return self._sampler.pattern(chains, self._scale(part.scale, scale, part))

    def passing(self, counts: Sequence[int], draws: int) -> tuple[list[int], dict[int, int]]:
        """Noisy counts of cells that are not empty (at least `draws` numbers are drawn), and the cells that would pass
        the threshold if they were empty, with their noisy counts.
        """
        with self._whole():
            part = self._next(Threshold)
            if isinstance(part, HeldThreshold):
                raise self._wrong("cells that hold no rows", part)
            values = np.zeros(max(draws, len(counts)), dtype=np.int64)
            values[: len(counts)] = np.fromiter(counts, dtype=np.int64, count=len(counts))
            noisy = laplace(self._sampler, values, part.scale).tolist()
            return noisy, lifted(part.size, part.threshold, part.scale, self._sampler)

    def passing_held(self, counts: Sequence[int]) -> dict[int, int]:
        """The places of the counts that pass the threshold, with their noisy counts."""
        with self._whole():
            part = self._next(HeldThreshold)
            return passing_held(counts, part.size, part.threshold, part.scale, self._sampler)

    def random_bits(self) -> KeyedBits:
        """A keyed stream of random bits, for every row some."""
        with self._whole():
            self._next(RandomBits)
            return self._sampler.keyed_bits()

    def random_integers(self) -> Source:
        """A source of random integers that hide nothing: which rows form a block, how candidates mutate."""
        with self._whole():
            self._next(RandomBits)
            return RandomIntegers(self._sampler)

    def accept(self) -> None:
        """Go on behind a repetition whose last draw is accepted."""
        with self._whole():
            self._drawn_repeat("an end of repetitions")
            self._left.popleft()
            self._begun = None

    def gives_up(self) -> bool:
        """Whether a repetition stops, with probability one in so many, without a draw that is accepted."""
        with self._whole():
            ends = self._sampler.one_in(self._drawn_repeat("random stopping").one_in)
            self._goes_on = not ends
            return ends

    def stops(self) -> bool:
        """Whether a repetition ends here, with probability one in so many, whatever its draws were; then go on behind
        it.
        """
        with self._whole():
            ends = self._sampler.one_in(self._drawn_repeat("random stopping").one_in)
            self._goes_on = not ends
            if ends:
                self._left.popleft()
                self._begun = None
            return ends

    def finish(self) -> None:
        """Refuse to leave parts undrawn: what was charged for and described was drawn."""
        with self._whole():
            if self._left:
                raise self._wrong("the end of the release", self._left[0])

    # -- the order ---------------------------------------------------------------------------------

    def _next(self, kind: type[Kind]) -> Kind:
        """The next part, which is of this kind."""
        while self._left and isinstance(self._left[0], Repeat):
            self._expand(self._left[0])
        part = self._left[0] if self._left else None
        if not isinstance(part, kind):
            raise self._wrong(kind.kind or "noise", part)
        if not (self._paid or isinstance(part, RandomBits)):
            raise PrivacyError(
                f"Noise was asked for before {self.event.mechanism!r} was charged. Charge the ledger first."
            )
        if not self._paid:
            self._taken.append(part)
        self._left.popleft()
        self._half_way = True
        return part

    def _drawn_repeat(self, asked: str) -> Repeat:
        """The repetition with random stopping whose parts were just drawn; what was drawn is decided on once."""
        repeat = self._left[0] if self._left else None
        if not (isinstance(repeat, Repeat) and repeat.one_in and self._accepts):
            raise self._wrong(asked, repeat)
        self._accepts = False
        return repeat

    def _expand(self, repeat: Repeat) -> None:
        """Put the parts of a repetition before what is left of it."""
        self._left.popleft()
        if repeat.one_in:
            if self._begun is repeat and not self._goes_on:
                raise self._wrong("another draw without random stopping", repeat)
            self._begun, self._accepts, self._goes_on = repeat, True, False
            self._left.appendleft(repeat)
        elif repeat.times > 1:
            self._left.appendleft(replace(repeat, times=repeat.times - 1))
        self._left.extendleft(reversed(repeat.parts))

    def _next_selection(self) -> Selection:
        part = self._next(Selection)
        if part.count > 1:
            self._left.appendleft(replace(part, count=part.count - 1))
        return part

    def _scale(self, planned: float, given: float | None, part: Part) -> float:
        """The scale of the plan, or, where that leaves it open, the one given."""
        if bool(planned) == (given is not None):
            raise self._wrong("a scale of its own" if planned else "no scale", part)
        if given is not None and not 0 < given < math.inf:
            raise self._wrong(f"a scale of {given!r}", part)
        return planned if given is None else given

    def _wrong(self, asked: str, part: Part | None) -> PrivacyError:
        told = "nothing more" if part is None else f"{part.kind} for {part.purpose!r}"
        return PrivacyError(
            f"The mechanism asked for {asked} where the event of {self.event.mechanism!r} has {told}. An event "
            "describes every draw, in order: this is a mistake in the mechanism. Report it."
        )


class RandomIntegers:
    """Random integers and nothing else of a sampler: no noise can be had from it."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def below(self, limits: Integers) -> Integers:
        """For each limit an integer from 0 to limit - 1, all equally likely."""
        return self._source.below(limits)


def noised(sampler: Sampler, values: Integers, parts: Iterable[Part]) -> Integers:
    """The values with the noise of these parts: for simulations, which draw one recipe many times over."""
    own = [part for part in parts if isinstance(part, Additive)]
    if sum(part.size for part in own) != values.size or not all(part.scale for part in own):
        raise PrivacyError(
            f"Noise for {sum(part.size for part in own)} values was asked for on {values.size}, or without a scale. "
            "Give as many values as the parts have, and parts with scales."
        )
    pieces = np.split(values, np.cumsum([part.size for part in own])[:-1])
    return np.concatenate([part.added(sampler, piece, part.scale) for part, piece in zip(own, pieces, strict=True)])


# -- quiet -----------------------------------------------------------------------------------------


class _WhileQuiet(type):
    def __subclasscheck__(cls, other: type) -> bool:
        return _quiet_now > 0


class _AnyWarning(Warning, metaclass=_WhileQuiet):
    """Every warning of every thread while somebody wants quiet, and none otherwise: a filter for it that is left behind
    does nothing.
    """


_lock = threading.Lock()
_quiet_now = 0
_list_before: object = None
_filters_before: list[tuple[object, ...]] = []
_shown_before: Callable[..., None] = warnings.showwarning


@contextmanager
def quietly() -> Iterator[None]:
    """While this is open in any thread, nobody is warned: a warning would reveal something about the rows.

    `warnings.catch_warnings` cannot do this: of two that overlap in two threads, the first to close ends the quiet of
    the other, and the second to close restores it for ever. Here they are counted; the last to close puts the filters
    back. Functions that turn warnings on for themselves are met where warnings are shown. What is ignored is not
    entered in `__warningregistry__`, and filters count as changed on opening and on closing, whatever happened in
    between, so that later warnings are shown or not by the caller's filters alone.
    """
    global _quiet_now, _list_before, _filters_before, _shown_before
    with _lock:
        _quiet_now += 1
        if _quiet_now == 1:
            _list_before, _filters_before = warnings.filters, list(warnings.filters)
            if warnings.showwarning is not _show:
                _shown_before = warnings.showwarning
        if _quiet_now == 1 or not warnings.filters or warnings.filters[0][2] is not _AnyWarning:
            warnings.simplefilter("ignore", category=_AnyWarning)  # again, where another one was put in front
        warnings.showwarning = _show
    try:
        yield
    finally:
        with _lock:
            _quiet_now -= 1
            if _quiet_now == 0:
                warnings.simplefilter("ignore", category=_AnyWarning)  # a change, which makes registries out of date
                same = warnings.filters is _list_before  # else catch_warnings of another thread has put its own there
                kept = _filters_before if same else warnings.filters
                warnings.filters[:] = [one for one in kept if one[2] is not _AnyWarning]  # type: ignore[index]
                if warnings.showwarning is _show:
                    warnings.showwarning = _shown_before


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning as before, but not while somebody wants quiet."""
    if not _quiet_now:
        _shown_before(message, category, filename, lineno, file, line)
