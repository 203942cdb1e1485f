"""What a fit will give, before anything is spent: simulation on tables that are generated from public facts.

Read `generated.py` (the tables), `sampled_law.py` (their targets, where there is a public sample), `simulation.py`
(fits of the library's own estimators with seeded noise), `plan.py`.
"""

from __future__ import annotations

from privfit.planning.plan import plan
from privfit.planning.result import Forecast, Plan

__all__ = ["Forecast", "Plan", "plan"]
