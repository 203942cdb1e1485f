"""Arrays in a temporary file: what does not fit in memory is written once and read many times.

The file lies where PRIVFIT_CACHE says, or where the system has its temporary files. Only its owner can read it, and it
has no name once it is open: it is gone with the object that holds it, with an error, and with a process that is killed.
It is read, not mapped into memory: pages of a mapped file count as memory of the process.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.tables.errors import DataError

CACHE = "PRIVFIT_CACHE"
Arrays = list[NDArray[Any]]


@dataclass(frozen=True)
class _Place:
    """Where an array begins, and how it lies there."""

    first: int
    kind: np.dtype[Any]
    shape: tuple[int, ...]
    turned: bool
    """Whether it is held column by column: products of arrays depend on that in their last digits."""


class ArrayFile:
    """Groups of arrays, in the order in which they were added."""

    def __init__(self) -> None:
        self._file = _opened()
        weakref.finalize(self, self._file.close)  # or a warning would come at some later time, in somebody else's fit
        self._groups: list[list[_Place]] = []
        self._end = 0
        self._reading = Lock()

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self._end

    def append(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Write one more group. A full disk is an error that charges nothing."""
        places = []
        for array in arrays:
            turned = array.flags.f_contiguous and not array.flags.c_contiguous
            places.append(_Place(self._end, array.dtype, array.shape, turned))
            self._write(np.ascontiguousarray(array.T if turned else array))
        self._groups.append(places)

    def _write(self, array: NDArray[Any]) -> None:
        try:
            self._file.write(array.reshape(-1).view(np.uint8).data)
        except OSError as error:
            kind = type(error).__name__
        else:
            self._end += array.nbytes
            return
        raise unwritable(kind)

    def close_for_writing(self) -> None:
        """What was added is on its way to the disk, and can be read."""
        try:
            self._file.flush()
        except OSError as error:
            kind = type(error).__name__
        else:
            return
        raise unwritable(kind)

    def group(self, number: int) -> Arrays:
        """All arrays of a group, as they were added."""
        return [self._array(place) for place in self._groups[number]]

    def part(self, number: int, which: int, start: int, count: int) -> NDArray[Any]:
        """Some entries of a vector of a group."""
        whole = self._groups[number][which]
        first = whole.first + start * whole.kind.itemsize
        return self._array(_Place(first, whole.kind, (count,), turned=False))

    def _array(self, place: _Place) -> NDArray[Any]:
        shape = place.shape[::-1] if place.turned else place.shape
        found = np.empty(shape, dtype=place.kind)
        self._fill(found.reshape(-1).view(np.uint8), place.first)
        return found.T if place.turned else found

    def _fill(self, into: NDArray[np.uint8], first: int) -> None:
        """Read bytes from here on. What fails here is a disk, whatever the rows are."""
        try:
            with self._reading:
                self._file.seek(first)
                found = self._file.readinto(into.data)
        except OSError:
            found = 0
        if found != len(into):
            raise DataError(
                "The temporary file in which rows were kept could not be read: a disk failed. A charge stands."
            )


def _opened() -> Any:
    try:
        return tempfile.TemporaryFile(prefix="privfit-", dir=os.environ.get(CACHE))
    except OSError as error:
        kind = type(error).__name__
    raise unwritable(kind)


def unwritable(kind: str) -> DataError:
    """The error for a temporary file that cannot be written."""
    return DataError(
        f"Rows had to be kept in a temporary file, which could not be written ({kind}), as when a disk is full. Set "
        f"{CACHE} to a folder with more space, or allow more memory: max_memory='8GB'. Nothing was charged."
    )
