"""Choices that are read from bytes: what a fuzzer changes, and what a test replays."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeVar

Choice = TypeVar("Choice")

ODD_NUMBERS = (
    0, 1, -1, 2, 3, 7, -0.0, 0.5, 1e-300, 5e-324, 1e300, -1e308, float("inf"), float("-inf"), float("nan"),
    255, 256, 2**31, -(2**31) - 1, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, True, False,
)  # fmt: skip
ODD_TEXTS = (
    "", " ", "a", "A", "?", "auto", "other", "missing", "drop", "public", "no", "yes", "nan", "inf", "None", "1", "1.5",
    "a\nb", "a\x00b", "\ufeff", "\u202e", "é", "😀", "'", '"', '";--', "%s", "{0}", "{x!r}", "[red]", "../a", "a" * 300,
    "__class__", "x0", "target", "1e999", "0x1", "=1+1", "\x1b[31m",
)  # fmt: skip


class Source:
    """Reads choices from bytes; zeros follow where they end, so that every input is a whole one."""

    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    @property
    def ended(self) -> bool:
        """Whether nothing but zeros follows."""
        return self._place >= len(self._content)

    def take(self, count: int) -> bytes:
        """So many bytes."""
        found = self._content[self._place : self._place + count]
        self._place += count
        return found.ljust(count, b"\0")

    def rest(self) -> bytes:
        """All bytes that are left."""
        found, self._place = self._content[self._place :], len(self._content)
        return found

    def whole(self, low: int, high: int) -> int:
        """An integer from low to high."""
        span = high - low + 1
        return low + int.from_bytes(self.take(1 if span <= 256 else 4), "little") % span

    def flag(self, one_in: int = 2) -> bool:
        """True in one of so many cases, and never at the end."""
        return self.whole(0, 255) % one_in == one_in - 1

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of these; the first at the end."""
        return choices[self.whole(0, len(choices) - 1)]

    def some(self, choices: Sequence[Choice], most: int) -> list[Choice]:
        """A few of these, perhaps one of them twice."""
        return [self.pick(choices) for _ in range(self.whole(0, most))]

    def real(self) -> float:
        """A float of any bits."""
        return float(struct.unpack("<d", self.take(8))[0])

    def number(self) -> Any:
        """A small integer, an odd number, or any float."""
        kind = self.whole(0, 2)
        return self.whole(-20, 200) if kind == 0 else self.pick(ODD_NUMBERS) if kind == 1 else self.real()

    def text(self) -> str:
        """An odd text, or a few characters."""
        if self.flag():
            return self.take(self.whole(0, 12)).decode("utf-8", "replace")
        return self.pick(ODD_TEXTS)

    def value(self, depth: int = 0) -> Any:
        """Anything that JSON or TOML can say."""
        kind = self.whole(0, 6 if depth < 3 else 3)
        if kind == 0:
            return self.number()
        if kind in (1, 2):
            return self.text()
        if kind == 3:
            return self.pick((None, True, False))
        if kind == 4:
            return [self.value(depth + 1) for _ in range(self.whole(0, 4))]
        if kind == 5:
            return [self.number() for _ in range(self.whole(0, 12))]
        return {self.text(): self.value(depth + 1) for _ in range(self.whole(0, 3))}
