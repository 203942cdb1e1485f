"""The privacy core: who is protected, what it costs, what was spent, and where noise comes from."""

from privfit.privacy.adjacency import Adjacency, checked_adjacency
from privfit.privacy.budget import Amount, Budget, exact
from privfit.privacy.errors import BudgetExceeded, LedgerError, PrivacyError, PrivacyWarning
from privfit.privacy.event import PURE, Event
from privfit.privacy.ledger import Ledger, process_ledger, warn_of_running_total
from privfit.privacy.ledger_chain import Entry, Receipt
from privfit.privacy.ledger_check import Verification
from privfit.privacy.ledger_state import OUTSIDE
from privfit.privacy.noise import Noise, SecureNoise, SeededNoise, noise_source, noised, seeded_generator
from privfit.privacy.terms import Terms

__all__ = [
    "OUTSIDE",
    "PURE",
    "Adjacency",
    "Amount",
    "Budget",
    "BudgetExceeded",
    "Entry",
    "Event",
    "Ledger",
    "LedgerError",
    "Noise",
    "PrivacyError",
    "PrivacyWarning",
    "Receipt",
    "SecureNoise",
    "SeededNoise",
    "Terms",
    "Verification",
    "checked_adjacency",
    "exact",
    "noise_source",
    "noised",
    "process_ledger",
    "seeded_generator",
    "warn_of_running_total",
]
