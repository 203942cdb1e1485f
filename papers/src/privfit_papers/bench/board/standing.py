"""What the board says: spreads of every method, paired differences from privfit, and the cells where somebody else is
ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from privfit_papers.bench.board.cells import Result
from privfit_papers.bench.board.methods import METHODS, OURS, OURS_WITH_DELTA, Method
from privfit_papers.bench.board.scores import MEASURES, Difference, Spread


@dataclass(frozen=True)
class Line:
    """A method on a table at an epsilon: the spread of each measure, and its differences from privfit with the same
    promise, above 0 where privfit is better.

    `failed` has the reasons of the splits without a score.
    """

    table: str
    task: str
    method: Method
    epsilon: float
    spreads: dict[str, Spread]
    differences: dict[str, Difference]
    failed: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "table": self.table,
            "method": self.method.name,
            "promise": self.method.promise,
            "epsilon": self.epsilon,
            "spreads": {name: asdict(spread) for name, spread in self.spreads.items()},
            "differences": {
                name: asdict(difference) | {"verdict": difference.verdict}
                for name, difference in self.differences.items()
            },
            "failed": list(self.failed),
        }


def standing(results: Iterable[Result]) -> list[Line]:
    """A line for every method, table and epsilon, in the order of the board."""
    grouped: dict[tuple[str, str, float], list[Result]] = {}
    for result in results:
        grouped.setdefault((result.cell.table, result.cell.method.name, result.cell.epsilon), []).append(result)
    places = {method.name: place for place, method in enumerate(METHODS)}
    tables = {table: place for place, table in enumerate(dict.fromkeys(table for table, _, _ in grouped))}
    return [
        _line(some, _ours(grouped, some[0]))
        for (table, name, epsilon), some in sorted(
            grouped.items(), key=lambda one: (tables[one[0][0]], places[one[0][1]], one[0][2])
        )
    ]


def ahead_of_us(lines: Iterable[Line]) -> list[tuple[Line, str]]:
    """The private methods of others that are ahead of privfit, with the measure."""
    return [
        (line, measure)
        for line in lines
        if not line.method.own and line.method.promise != "none"
        for measure, difference in line.differences.items()
        if difference.mean < 0
    ]


def _ours(grouped: dict[tuple[str, str, float], list[Result]], of: Result) -> Sequence[Result]:
    name = OURS_WITH_DELTA if of.cell.method.promise == "delta" else OURS
    return grouped.get((of.cell.table, name, of.cell.epsilon), ())


def _line(results: Sequence[Result], ours: Sequence[Result]) -> Line:
    cell, found = results[0].cell, [result for result in results if not result.failed]
    told = {result.cell.split: result.scores for result in ours if not result.failed}
    both = [result for result in found if result.cell.split in told]
    spreads, differences = {}, {}
    for measure, more in MEASURES[cell.task].items():
        if found:
            spreads[measure] = Spread.of([result.scores[measure] for result in found], more)
        if both and cell.method.promise != "none" and results is not ours:
            pairs = [(told[result.cell.split][measure], result.scores[measure]) for result in both]
            differences[measure] = Difference.of([one for one, _ in pairs], [other for _, other in pairs], more)
    failed = tuple(result.failed for result in results if result.failed)
    return Line(cell.table, cell.task, cell.method, cell.epsilon, spreads, differences, failed)
