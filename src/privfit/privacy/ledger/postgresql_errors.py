"""What errors of a PostgreSQL server mean for a ledger, in our words: the driver's messages may quote rows."""

from __future__ import annotations

CONNECT_SECONDS = 10
"""Seconds that a server may take to answer: far more than any that is there."""
LOCKED_OUT = (
    "did not let your role in. Put its password into PGPASSWORD, a password file or a service file: copies in other "
    "processes know no other."
)
_GONE = (
    "is gone, and what it had spent with it",
    "Restore the database; a ledger is never started again by itself",
)
_READ_ONLY = ("is read-only here: {told}", "Give the address of the primary server")
MEANINGS = {
    "42501": (
        "does not allow this to your role: {told}",
        "Ask the owner of the ledger: privfit ledger grant --spender or --reader",
    ),
    "3F000": _GONE,
    "42P01": _GONE,
    "55P03": (
        "is locked: others used it for {seconds} seconds",
        "Try again later, or look for a process that hangs",
    ),
    "23505": ("was charged by somebody else at the same time", "Try again"),
    "25006": _READ_ONLY,
    "0A000": _READ_ONLY,  # a standby
}
"""What errors of the server mean for a ledger, by SQLSTATE, and what to do."""


def reason(message: str) -> str:
    """Why a connection was not made, in our words: messages of the driver may quote the address."""
    if "password" in message or "authentication" in message or "no pg_hba" in message:
        return LOCKED_OUT
    if "does not exist" in message:
        return "has no such database or role. Check the address."
    if "timeout" in message:
        return f"did not answer in {CONNECT_SECONDS} seconds. Check the address and the network."
    return "cannot be reached. Check the address, the network and whether the server runs."
