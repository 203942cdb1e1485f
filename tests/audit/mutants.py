"""Broken fits and broken functions, each with the attack that must catch it. Never in library code."""

from __future__ import annotations

import dataclasses
import io
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.mechanisms.aggregation.block_plan import BlockPlan
from privfit.mechanisms.base import Mechanism, NullLedger
from privfit.mechanisms.genetic.rounds import SearchRounds
from privfit.mechanisms.genetic.selections import Choices
from privfit.mechanisms.perturbation import objective, problem
from privfit.mechanisms.perturbation.objective_noise import ObjectiveNoise
from privfit.mechanisms.perturbation.problem import Gradients
from privfit.privacy import Draws, Event, SeededNoise
from privfit.privacy.parts import Laplace
from privfit.rows import RowWeights, encoding
from privfit.rows.persons import PersonRows
from privfit.statistics.moments import Moments
from privfit.tables import Table

# -- functions for the black box ----------------------------------------------------------------------

SECRET, FLOATS = SeededNoise(11), np.random.default_rng(11)


def laplace(table: list[int], scale: float, source: SeededNoise = SECRET) -> int:
    return int(source.laplace(np.array([sum(table)]), scale)[0])


def leaks_sometimes(table: list[int]) -> int:
    return 1000 + sum(table) if SECRET.one_in(4) else laplace([], 1.0)


def raises_on_a_row(table: list[int]) -> int:
    if table[-1]:
        raise ValueError("a row")
    return laplace(table, 1.0)


def prints_a_row(table: list[int]) -> int:
    print(table[-1])
    return laplace(table, 1.0)


def warns_of_a_row(table: list[int]) -> int:
    if table[-1]:
        warnings.warn("a large row", stacklevel=1)
    return laplace(table, 1.0)


def names_a_row(table: list[int]) -> dict[str, int]:
    return {f"row {table[-1]}": laplace(table, 1.0)}


def as_many_as_rows(table: list[int]) -> list[int]:
    return [laplace(table, 1.0)] * (1 + table[-1])


def adaptive(table: list[int]) -> list[int]:
    """Four answers, of which each costs what all may cost."""
    return [laplace(table, 1.0) for _ in range(4)]


def first_line_as_names(table: list[int]) -> list[str]:
    """A file without a header, whose last row stands first."""
    lines = "\n".join(map(str, table[::-1]))
    return pl.read_csv(io.StringIO(lines)).columns


def float_laplace(table: list[int]) -> float:
    """Fine floats near zero are as fine as the value that is noised lets them be."""
    return float(sum(table) - 1 + FLOATS.laplace(0.0, 1.0))


FUNCTIONS: dict[str, Callable[[list[int]], object]] = {
    "a third of the scale": lambda table: laplace(table, 1 / 3),
    "no noise": lambda table: sum(table),
    "seeded noise, the same in every run": lambda table: laplace(table, 1.0, SeededNoise(5)),
    "four answers at the price of one": adaptive,
    "the exact answer one time in four": leaks_sometimes,
    "an error that depends on a row": raises_on_a_row,
    "a row is printed": prints_a_row,
    "a warning that depends on a row": warns_of_a_row,
    "a key that names a row": names_a_row,
    "a length that depends on a row": as_many_as_rows,
    "the first row of a file passes for the names of columns": first_line_as_names,
    "noise in floats, with the right scale": float_laplace,
    "noise on floats": lambda table: sum(table) / 3 + laplace([], 1.0),
}

# -- fits ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    name: str
    attack: str
    """The attack that must catch it."""
    break_: Callable[[pytest.MonkeyPatch], None]
    case: str = "LinearRegression (defaults)"
    """What is broken, by its key in the catalogue."""


def _after_fit(change: Callable[[Any, Any], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """A fit that does something with its table when it is done."""

    def break_(patch: pytest.MonkeyPatch) -> None:
        fit = pf.LinearRegression.fit

        def broken(self: Any, X: Any, y: Any = None) -> Any:
            fit(self, X, y)
            change(self, X)
            return self

        patch.setattr(pf.LinearRegression, "fit", broken)

    return break_


def _before_fit(change: Callable[[Any, Any], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """A fit that looks at its table before it decides."""

    def break_(patch: pytest.MonkeyPatch) -> None:
        fit = pf.LinearRegression.fit

        def broken(self: Any, X: Any, y: Any = None) -> Any:
            change(self, X)
            return fit(self, X, y)

        patch.setattr(pf.LinearRegression, "fit", broken)

    return break_


def _scaled_event(factor: float) -> Callable[[pytest.MonkeyPatch], None]:
    def break_(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(
            "privfit.mechanisms.base.Draws",
            lambda event, sampler: Draws(
                dataclasses.replace(
                    event, parts=tuple(dataclasses.replace(part, scale=part.scale * factor) for part in event.parts)
                ),
                sampler,
            ),
        )

    return break_


def _wrong_adjacency(patch: pytest.MonkeyPatch) -> None:
    sensitivity = Moments.sensitivity
    patch.setattr(Moments, "sensitivity", lambda self, adjacency, norm="l1": sensitivity(self, "add-remove", norm))


def _smaller_sensitivity(factor: float) -> Callable[[pytest.MonkeyPatch], None]:
    def break_(patch: pytest.MonkeyPatch) -> None:
        sensitivity = Moments.sensitivity
        patch.setattr(Moments, "sensitivity", lambda self, *given: max(1, int(sensitivity(self, *given) * factor)))

    return break_


def _missing_entry(patch: pytest.MonkeyPatch) -> None:
    """A product that the sensitivity does not count, such as that of a row with itself."""
    sensitivity = Moments.sensitivity
    patch.setattr(Moments, "sensitivity", lambda self, *given: sensitivity(self, *given) - self.unit)


def _unclipped_target(patch: pytest.MonkeyPatch) -> None:
    encode = encoding.encode_numbers

    def broken(blocks: Any, columns: Any, out: Any, units: int) -> None:
        encode(blocks, columns, out, units)
        if blocks[0].column.name == "y":
            out[0] = np.rint((columns[0] - blocks[0].center) / blocks[0].unit * units)

    patch.setattr(encoding, "encode_numbers", broken)


def _uncapped_persons(patch: pytest.MonkeyPatch) -> None:
    init = PersonRows.__init__
    patch.setattr(PersonRows, "__init__", lambda self, most: init(self, 100))


def _unbounded_weights(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowWeights, "encoded", lambda self, values: np.rint(np.asarray(values) / self.most * self.levels))


def _truncated_read(patch: pytest.MonkeyPatch) -> None:
    """The first batch is taken for the whole table."""
    batches = Table.batches
    patch.setattr(Table, "batches", lambda self, *given: itertools.islice(batches(self, *given), 1))


def _half_the_range(patch: pytest.MonkeyPatch) -> None:
    scale = Choices.scale
    patch.setattr(Choices, "scale", lambda self, place, sensitivity: scale(self, place, sensitivity) / 2)


def _early_stop(patch: pytest.MonkeyPatch) -> None:
    """A search that stops when its best candidate is good enough."""
    search = SearchRounds.search

    def broken(self: Any, scores: Any, low: Any, high: Any, draws: Any, candidates: Any, *given: Any) -> Any:
        limit = scores.sensitivity(candidates, self.choices.parameters, self.choices.by_range)
        integers, _ = scores(candidates, limit)
        if max(map(int, integers)) % 2:
            return np.asarray(candidates[int(np.argmax(integers))], dtype=np.float64)
        return search(self, scores, low, high, draws, candidates, *given)

    patch.setattr(SearchRounds, "search", broken)


def _blocks_by_position(patch: pytest.MonkeyPatch) -> None:
    """Three neighbouring rows are a block: one more row at the start moves a row of every block."""

    def places(self: Any, rows: int, source: Any) -> Any:
        source.below(np.full(rows, self.blocks, dtype=np.int64))
        return np.minimum(np.arange(rows) // 3, self.blocks - 1)[:, None]

    patch.setattr(BlockPlan, "places", places)


def _dropped_clip(patch: pytest.MonkeyPatch) -> None:
    clip = np.clip

    def dropped(values: Any, low: Any, high: Any, out: Any = None) -> Any:
        return clip(values, low, high) if out is None else np.copyto(out, values)

    patch.setattr(encoding.np, "clip", dropped)


def _released(order: Callable[..., None]) -> Callable[[pytest.MonkeyPatch], None]:
    """Another order of steps, or another charge, around the real release."""

    def break_(patch: pytest.MonkeyPatch) -> None:
        release = Mechanism.release

        def broken(self: Any, rows: Any, parameters: Any, ledger: Any, sampler: Any, problem: Any) -> Any:
            found = release(self, rows, parameters, NullLedger(), sampler, problem)
            order(ledger, found.event)
            return found

        patch.setattr(Mechanism, "release", broken)

    return break_


def _half_price(ledger: pf.Ledger, event: Event) -> None:
    parts = tuple(dataclasses.replace(part, epsilon=0.0) for part in event.parts)
    ledger.charge(dataclasses.replace(event, epsilon=event.epsilon / 2, parts=parts))


def _one_draw_too_few(patch: pytest.MonkeyPatch) -> None:
    added = Draws.add

    def twice(self: Any, values: Any, **given: Any) -> Any:
        return added(self, added(self, values, **given), **given)

    patch.setattr(Draws, "add", twice)


def _reused_noise(patch: pytest.MonkeyPatch) -> None:
    """Half of the values receive noise, which the other half receives again."""
    added = Draws.add

    def broken(self: Any, values: Any, **given: Any) -> Any:
        noise = added(self, np.zeros_like(values), **given)
        half = len(values) // 2
        noise[half : 2 * half] = noise[:half]
        return values + noise

    patch.setattr(Draws, "add", broken)


def _float_noise(patch: pytest.MonkeyPatch) -> None:
    added = Draws.add
    patch.setattr(
        Draws, "add", lambda self, values, **given: added(self, values, **given) + FLOATS.random(values.shape)
    )


def _coarser(patch: pytest.MonkeyPatch) -> None:
    """Noise on a coarser lattice than the event states."""
    added = Draws.add
    patch.setattr(Draws, "add", lambda self, values, **given: added(self, values, **given) // 1024 * 1024)


def _own_noise(patch: pytest.MonkeyPatch) -> None:
    """Every fit draws the same noise, made by nobody that is watched."""
    patch.setattr(Laplace, "added", lambda self, sampler, values, scale: SeededNoise(5).laplace(values, scale))


def _noise_by_row(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Laplace, "added", lambda self, sampler, values, scale: sampler.laplace(values, scale + float(values.sum() % 97))
    )


def _raise_for_outliers(model: Any, X: Any) -> None:
    if X["age"].max() > 100:
        raise ValueError("age is out of bounds")


def _warn_of_outliers(model: Any, X: Any) -> None:
    if X["age"].max() > 100:
        warnings.warn("values were clipped", stacklevel=1)


def _bounds_of(model: Any, X: Any) -> None:
    age = X["age"]
    features = [pf.Numeric("age", float(age.min()), float(age.max()) + 1), *model.schema.features[1:]]
    model.schema = pf.Schema(features, model.schema.target)


def _levels_of(model: Any, X: Any) -> None:
    features = list(model.schema.features)
    features[2] = pf.Category("region", sorted(X["region"].unique()), other=True)
    model.schema = pf.Schema(features, model.schema.target)


def _rows_of(model: Any, X: Any) -> None:
    model.expected_rows = len(X)


def _report_steps(model: Any, X: Any) -> None:
    steps = int(X["age"].sum()) % 7
    model.report_ = dataclasses.replace(model.report_, notes=(f"{steps} iterations",))


def _set(name: str, value: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    return lambda model, X: setattr(model, name, value(X))


def _shifted(model: Any, X: Any) -> None:
    if isinstance(X, pl.DataFrame):
        model.coef_ = model.coef_ + X["age"][0]


PERSONS = "LinearRegression (rows_per_person=2, person=person)"
SEARCH = "GeneticSearch (selection=permute-and-flip)"
FIRST_ROWS = "Aggregate (the first row of each block)"

FITS = [
    Mutant("half of the scale is drawn", "replay", _scaled_event(0.5)),
    Mutant("shares add up to 1.1: a scale too small by that", "replay", _scaled_event(1 / 1.1)),
    Mutant("the sensitivity of the other adjacency", "replay", _wrong_adjacency),
    Mutant("half of the sensitivity", "replay", _smaller_sensitivity(0.5)),
    Mutant("a product that the sensitivity does not count", "replay", _missing_entry),
    Mutant("a clip is dropped", "replay", _dropped_clip),
    Mutant("the target is not clipped", "replay", _unclipped_target),
    Mutant("weights beyond their bound", "replay", _unbounded_weights, "LinearRegression (max_weight=2.0)"),
    Mutant("rows of a person that are not capped", "replay", _uncapped_persons, PERSONS),
    Mutant("a selection with half of the scale", "replay", _half_the_range, SEARCH),
    Mutant("a search that stops by its scores", "replay", _early_stop, SEARCH),
    Mutant("noise that is used twice", "replay", _reused_noise),
    Mutant("the expected number of rows is the real one", "replay", _before_fit(_rows_of)),
    Mutant("bounds from the rows", "replay", _before_fit(_bounds_of)),
    Mutant("levels from the rows", "replay", _before_fit(_levels_of)),
    Mutant("a number of iterations in the report", "replay", _after_fit(_report_steps)),
    Mutant("one draw too few in the event", "replay", _one_draw_too_few),
    Mutant("a scale that depends on rows", "replay", _noise_by_row),
    Mutant("an error after the charge that depends on a row", "replay", _after_fit(_raise_for_outliers)),
    Mutant("a warning after the charge that depends on a row", "replay", _after_fit(_warn_of_outliers)),
    Mutant("the number of rows is kept", "replay", _after_fit(_set("count_", len))),
    Mutant("a mean without noise is kept", "replay", _after_fit(_set("mean_", lambda X: float(X["age"].mean())))),
    Mutant("the first row moves the fit", "order", _after_fit(_shifted)),
    Mutant("a read that ends after a batch", "order", _truncated_read),
    Mutant("blocks by the position of rows", "black box", _blocks_by_position, FIRST_ROWS),
    Mutant("float noise is added", "precision", _float_noise),
    Mutant("noise on a coarser lattice than is stated", "precision", _coarser),
    Mutant("noise with a seed of its own", "precision", _own_noise),
    Mutant("charge after draw", "ledger", _released(lambda ledger, event: ledger.charge(event))),
    Mutant("no charge", "ledger", _released(lambda ledger, event: None)),
    Mutant("half of the price", "ledger", _released(_half_price)),
]


# -- perturbed objectives ----------------------------------------------------------------------------


def _half_of_the_noise(patch: pytest.MonkeyPatch) -> None:
    """The scale that is planned, and declared, is half of what is proved."""
    usual = objective.pure_noise
    patch.setattr(objective, "pure_noise", lambda kind, gradients, epsilon: usual(kind, gradients, 2 * epsilon))


def _small_ridge(patch: pytest.MonkeyPatch) -> None:
    """A ridge that is far smaller passes for one at which curvature costs nothing."""
    usual = ObjectiveNoise.ridge_without_cost
    patch.setattr(ObjectiveNoise, "ridge_without_cost", lambda self, *given: usual(self, *given) / 1000)


def _no_log_determinant(patch: pytest.MonkeyPatch) -> None:
    """As printed in 2008: the change of variables is forgotten."""
    patch.setattr(Gradients, "log_determinant_cost", lambda self, ridge: 0.0)
    patch.setattr(Gradients, "ridge_for_cost", lambda self, cost: 0.0)


def _half_of_the_gradient(patch: pytest.MonkeyPatch) -> None:
    """Neighbours are taken to add a row where they replace one."""
    usual = Gradients.__post_init__

    def halved(self: Gradients) -> None:
        usual(self)
        for norm in self.sensitivity:
            self.sensitivity[norm] /= 2

    patch.setattr(Gradients, "__post_init__", halved)


def _unclipped_slopes(patch: pytest.MonkeyPatch) -> None:
    """Slopes are twice as large as the loss states."""
    usual = problem.derivatives

    def steeper(gradients: Gradients) -> Any:
        slopes, curvatures = usual(gradients)
        return (lambda scores, target: 2 * slopes(scores, target)), curvatures

    patch.setattr(problem, "derivatives", steeper)


OBJECTIVES = [
    Mutant("half of the noise in an objective, and declared so", "density", _half_of_the_noise),
    Mutant("a ridge below the needed one", "density", _small_ridge),
    Mutant("the log-determinant is forgotten", "density", _no_log_determinant),
    Mutant("the gradient of the wrong adjacency", "density", _half_of_the_gradient),
    Mutant("slopes beyond what the loss states", "density", _unclipped_slopes),
]
