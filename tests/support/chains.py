"""What an error could tell: its text and that of everything it drags along."""

from __future__ import annotations


def told_by(error: BaseException) -> str:
    """The texts, notes and arguments of an error and of every error it was raised from or during."""
    told, pending, seen = [], [error], set()
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        told += [str(current), repr(current), repr(current.args), repr(getattr(current, "__notes__", ""))]
        pending += [linked for linked in (current.__cause__, current.__context__) if linked is not None]
    return "\n".join(told)


def assert_ours(error: BaseException, *secrets: str) -> None:
    """A refusal before the charge that says so, drags nothing along and quotes none of these."""
    assert str(error).endswith("Nothing was charged.")
    assert error.__context__ is None
    assert error.__cause__ is None
    for secret in secrets:
        assert secret not in told_by(error)
