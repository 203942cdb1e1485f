"""`python -m tests.audit` prints every mutant, the attack that must catch it, and whether it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import privfit as pf
from tests.audit.mutants import FITS, FUNCTIONS, OBJECTIVES, Mutant
from tests.audit.test_mutants import densities, found

Line = tuple[str, str, bool]


def broken(mutant: Mutant, is_violated: Callable[[], bool]) -> Line:
    """Whether a mutant is caught."""
    with pytest.MonkeyPatch.context() as patch:
        mutant.break_(patch)
        return mutant.name, mutant.attack, is_violated()


def lines() -> Iterator[Line]:
    """Every mutant: functions, fits and perturbed objectives."""
    for name, function in FUNCTIONS.items():
        result = pf.audit.black_box(function, [1, 0], [1, 1], epsilon=1.0, delta=1e-6, runs=600)
        yield name, "black box", result.violated
    for mutant in FITS:
        yield broken(mutant, lambda mutant=mutant: found(mutant.attack, mutant.case).violated)  # type: ignore[misc]
    for mutant in OBJECTIVES:
        yield broken(mutant, lambda: any(finding.violated for finding in densities()))


def main() -> int:
    """Print the table; 1 where a mutant is not caught."""
    missed = 0
    for name, attack, caught in lines():
        print(f"{name:60}{attack:12}{'caught' if caught else 'MISSED'}", flush=True)
        missed += not caught
    print(f"\n{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
