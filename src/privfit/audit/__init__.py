"""Attacks that users can run: on anything that claims to be private, and on every estimator of this library.

Read in this order:

1. `black_box.py`: `black_box`, from calls on two tables to a lower bound on epsilon; `confidence.py` has the bound,
   `outputs.py` what a run shows.
2. `recording.py`: noise that is written down, and noise that answers as another run did.
3. `replay.py`: what neighbours may differ in when their noisy values are the same.
4. `rows.py`: tables that hurt, made from a schema.
5. `estimators.py`: `mechanisms`, all attacks on all estimators; `table.py` its result.
"""

from privfit.audit.black_box import BlackBoxResult, black_box
from privfit.audit.estimators import mechanisms
from privfit.audit.table import AuditResult, Finding

__all__ = ["AuditResult", "BlackBoxResult", "Finding", "black_box", "mechanisms"]
