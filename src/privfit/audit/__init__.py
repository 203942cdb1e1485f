"""Attacks that users can run: on anything that claims to be private, and on everything that this library releases.

Read in this order:

1. `black_box.py`: `black_box`, from calls on two tables to a lower bound on epsilon; `confidence.py` has the bound,
   `outputs.py` what a run shows.
2. `recording.py`: noise that is written down, and noise that answers as another run did.
3. `replay.py`: what neighbours may differ in when their noisy values are the same.
4. `rows.py`: tables that hurt, made from a schema; `cases.py`: what is attacked; `catalogue.py`: all of it.
5. `attacks.py`: attacks on one case; `density.py`: the exact law of perturbed objectives; `precision.py`: lattices.
6. `one_run.py`: `one_run`, canaries.
7. `runner.py`: `mechanisms`, all attacks on all cases; `table.py` its result.
"""

from privfit.audit.black_box import BlackBoxResult, black_box
from privfit.audit.one_run import OneRunResult, one_run
from privfit.audit.runner import mechanisms
from privfit.audit.table import AuditResult, Finding

__all__ = ["AuditResult", "BlackBoxResult", "Finding", "OneRunResult", "black_box", "mechanisms", "one_run"]
