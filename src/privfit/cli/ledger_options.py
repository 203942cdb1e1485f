"""A ledger as commands take it: options that go together, and a file that is opened or made."""

from __future__ import annotations

from privfit.cli.console import hint
from privfit.cli.errors import CommandError
from privfit.privacy import Budget, Ledger, LedgerError, PrivacyError, place_of


def check_ledger_options(
    seed: int | None, ledger: str | None, ledger_epsilon: float | None, ledger_delta: float | None, note: str
) -> None:
    """Refuse options about a ledger and a seed that do not go together."""
    if seed is not None and ledger is not None:
        raise PrivacyError(
            f"--seed {seed} was given together with --ledger; noise from a seed can be repeated and subtracted, so the "
            "model is not private "
            "and a ledger does not take it. Leave out --seed, or leave out --ledger. Nothing was charged."
        )
    if ledger_epsilon is not None and ledger is None:
        raise CommandError(
            f"--ledger-epsilon {ledger_epsilon:g} was given without --ledger. Say which file: --ledger budget.db."
        )
    if note and ledger is None:
        raise CommandError(
            "--note was given without --ledger, and it is a line of the ledger. Say which file: --ledger budget.db."
        )
    if ledger_delta is not None and ledger_epsilon is None:
        raise CommandError(
            f"--ledger-delta {ledger_delta:g} was given without --ledger-epsilon. A new budget needs both: add "
            "--ledger-epsilon 1."
        )


def check_new_budget(path: str, asked: Budget, epsilon: float | None, delta: float) -> None:
    """A ledger that could not pay even for the first fit is not made: its budget would stand for ever."""
    if epsilon is None or place_of(path).exists():
        return
    if asked.epsilon > epsilon or asked.delta > delta:
        raise CommandError(
            f"This fit asks for epsilon {asked.epsilon:g} and delta {asked.delta:g}, and the new ledger would have "
            f"epsilon {epsilon:g} and delta {delta:g} in all. "
            "It was not made. Give a larger --ledger-epsilon or --ledger-delta, or ask for less."
        )


def opened_ledger(path: str, epsilon: float | None, delta: float | None) -> Ledger:
    """The ledger in this file; a new one only where the user says how much it may spend."""
    if place_of(path).exists():
        return Ledger(path, epsilon, delta)
    if epsilon is None:
        raise LedgerError(
            f"There is no ledger {shown(path)!r}, and a new one needs a budget. Check the path, add --ledger-epsilon "
            f"1, or make it first: privfit ledger create {shown(path)} --epsilon 1. Nothing was charged."
        )
    budget = Budget(epsilon, delta or 0.0)
    made = Ledger(path, budget.epsilon, budget.delta)
    and_delta = f" and delta {made.delta:g}" if made.delta else ""
    hint(f"Made the ledger {shown(path)} with a budget of epsilon {made.epsilon:g}{and_delta}.")
    return made


def paying_ledger(
    path: str | None, asked: Budget, epsilon: float | None, delta: float | None, note: str
) -> Ledger | None:
    """The ledger that a command pays from, if one was named; a new one only where it could pay."""
    if path is None:
        return None
    check_new_budget(path, asked, epsilon, delta or 0.0)
    return opened_ledger(path, epsilon, delta).with_note(note)


def shown(ledger: str) -> str:
    """A ledger as it was given, but for the password of an address."""
    return str(place_of(ledger)) if "://" in ledger else ledger
