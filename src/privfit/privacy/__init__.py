"""The privacy core: who is protected, what it costs, what was spent, and where noise comes from."""

from privfit.privacy.budget import Adjacency, Amount, Budget, PrivacyParameters, checked_adjacency, exact
from privfit.privacy.draws import Draws, noised
from privfit.privacy.errors import BudgetExceeded, LedgerError, PrivacyError, PrivacyWarning
from privfit.privacy.event import PURE, Event
from privfit.privacy.ledger.check import Verification
from privfit.privacy.ledger.entries import Entry, Receipt
from privfit.privacy.ledger.ledger import Ledger, place_of, process_ledger, warn_of_running_total
from privfit.privacy.ledger.null import NullLedger
from privfit.privacy.ledger.splits import Identity, Split
from privfit.privacy.padding import padded
from privfit.privacy.samplers.sources import (
    PublicGenerator,
    Sampler,
    SecureNoise,
    Seed,
    Seeded,
    SeededNoise,
    noise_source,
    seeded_generator,
)

__all__ = [
    "PURE",
    "Adjacency",
    "Amount",
    "Budget",
    "BudgetExceeded",
    "Draws",
    "Entry",
    "Event",
    "Identity",
    "Ledger",
    "LedgerError",
    "NullLedger",
    "PrivacyError",
    "PrivacyParameters",
    "PrivacyWarning",
    "PublicGenerator",
    "Receipt",
    "Sampler",
    "SecureNoise",
    "Seed",
    "Seeded",
    "SeededNoise",
    "Split",
    "Verification",
    "checked_adjacency",
    "exact",
    "noise_source",
    "noised",
    "padded",
    "place_of",
    "process_ledger",
    "seeded_generator",
    "warn_of_running_total",
]
