"""Work on pieces of rows: in threads where there are several pieces, in their order, errors too."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from privfit.rows.workers import in_order


def pieces(last: int, breaks: bool = False) -> Iterator[int]:
    yield from range(last)
    if breaks:
        raise ValueError("a file that ends early")


def refusing(piece: int) -> int:
    if piece == 0:
        raise KeyError("the first row")
    return piece


@pytest.mark.parametrize("last", [0, 1, 2, 9])
@pytest.mark.parametrize("cores", [1, 4])
def test_pieces_are_handed_back_in_order(last: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privfit.rows.workers.thread_count", lambda _: cores)
    assert list(in_order(cores, lambda piece: piece**2, pieces(last), 2)) == [piece**2 for piece in range(last)]


@pytest.mark.parametrize("last", [1, 2, 9])
@pytest.mark.parametrize("cores", [1, 4])
def test_what_earlier_rows_have_to_say_comes_first(last: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far ahead a table is read shows in no error."""
    monkeypatch.setattr("privfit.rows.workers.thread_count", lambda _: cores)
    with pytest.raises(KeyError, match="first row"):
        list(in_order(cores, refusing, pieces(last, breaks=True), 2))
    found: list[int] = []
    with pytest.raises(ValueError, match="ends early"):
        found.extend(in_order(cores, int, pieces(last, breaks=True), 2))
    assert found == [*range(last)]


def test_a_single_piece_has_no_thread_of_its_own_and_numpy_errors_as_one_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("privfit.rows.workers.thread_count", lambda _: 4)

    def seen(_: int) -> tuple[int, str]:
        return threading.get_ident(), np.geterr()["over"]

    with np.errstate(over="raise"):
        one, many = ([*in_order(4, seen, pieces(last), 2)] for last in (1, 2))
    assert one == [(threading.get_ident(), "warn")]
    assert threading.get_ident() not in {thread for thread, _ in many}
    assert {told for _, told in many} == {"warn"}
