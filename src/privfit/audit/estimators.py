"""Attacks on every estimator of this library, on tables made from a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import is_classifier

from privfit.audit.black_box import black_box
from privfit.audit.recording import RecordingNoise, noise_from
from privfit.audit.replay import Replay, Seen, compared, exceeds, spacious_ledger, watched_fit
from privfit.audit.rows import Neighbours, RowMaker
from privfit.audit.table import AuditResult, Finding
from privfit.models import ESTIMATORS
from privfit.models.private import AnyModel
from privfit.privacy import Adjacency, BudgetExceeded, Ledger
from privfit.schema import Category, Numeric, Schema

EPSILON = 1.0
"""The price of every fit that is attacked: chosen, not measured."""
QUICK_RUNS = 100
"""Black-box runs on each table of a quick audit, which finds gross violations alone; with 40 no outcome could refute
epsilon 1. Trades power for time: chosen, not measured."""
FULL_RUNS = 1500
"""Black-box runs on each table of a full audit: chosen, not measured."""
QUICK_STEPS, FULL_STEPS = 3, 60
"""Steps of the search for worse rows: chosen, not measured."""
FEATURES = (
    Numeric("age", 0, 100),
    Numeric("offset", 100, 101),
    Category("region", ["north", "east", "south"]),
    Category("member", ["no", "yes"]),
)
SETTINGS: tuple[Mapping[str, object], ...] = ({}, {"delta": 1e-6}, {"rows_per_person": 2})


@dataclass(frozen=True)
class Attacked:
    """An estimator with settings, on tables of a schema."""

    estimator: type[AnyModel]
    setting: Mapping[str, object]
    schema: Schema
    rows: RowMaker

    @property
    def name(self) -> str:
        """The settings in words."""
        return ", ".join(f"{name}={value}" for name, value in self.setting.items()) or "defaults"

    def model(self, adjacency: Adjacency = "replace-one", **more: object) -> AnyModel:
        """An estimator that is not fitted."""
        given = {"epsilon": EPSILON, "schema": self.schema, "adjacency": adjacency, **self.setting, **more}
        return self.estimator(**given)

    def fitted(self, pair: Neighbours) -> tuple[Seen, Seen]:
        """One table, and its neighbour with the same noisy values."""
        first = watched_fit(lambda ledger: self.model(pair.adjacency, ledger=ledger), self.frame(pair, pair.left))
        second = watched_fit(
            lambda ledger: self.model(pair.adjacency, ledger=ledger), self.frame(pair, pair.right), first.noise.calls
        )
        return first, second

    def frame(self, pair: Neighbours, own: tuple[object, ...]) -> object:
        """The table of a pair with these rows of one person."""
        return self.rows.frame((*pair.crowd, *own))  # type: ignore[arg-type]

    def finding(self, attack: str, numbers: tuple[float | None, float | None], runs: int, faults: str) -> Finding:
        """A line of the table."""
        verdict = "violated" if faults else "holds"
        return Finding(self.estimator.__name__, self.name, attack, *numbers, runs, verdict, faults)


def mechanisms(
    quick: bool = True,
    estimators: Sequence[type[AnyModel]] = ESTIMATORS,
    schema: Schema | None = None,
    seed: int = 0,
) -> AuditResult:
    """Attack every estimator: black box, record and replay, a search for worse rows, order of rows, and the ledger.

    Tables are made from the schema; no table of yours is read and no ledger of yours is charged. Noise of
    the audit's own fits is not secret; fits in other threads draw as ever.

    Parameters
    ----------
    quick : bool, default=True
        Whether to make few runs, in less than two minutes, or many.
    estimators : sequence of type, default=ESTIMATORS
        The classes to attack.
    schema : Schema or None, default=None
        Public facts to make tables from; None: a built-in one. Estimators that do not take its target are left out.
        Its row filter and its column of persons are not used.
    seed : int, default=0
        Of the rows that are tried.

    Returns
    -------
    AuditResult
        A line per estimator, setting and attack; printed, it is a table.
    """
    found: list[Finding] = []
    for estimator in suitable(estimators, schema):
        own = _schema_for(estimator, schema)
        for setting in SETTINGS:
            if setting.keys() <= estimator().get_params().keys():
                found += _attacks(Attacked(estimator, setting, own, RowMaker(own, seed)), quick)
    return AuditResult.of(found)


def suitable(estimators: Sequence[type[AnyModel]], schema: Schema | None) -> list[type[AnyModel]]:
    """The estimators that take the target of a schema; all of them without one."""
    if schema is None:
        return list(estimators)
    if (target := schema.target) is None:
        return []
    fitting = [one for one in estimators if isinstance(target, Category) == is_classifier(one())]
    many = isinstance(target, Category) and len(target.levels) > 2
    return [one for one in fitting if not many or one()._chosen_mechanism().many_classes]


def _schema_for(estimator: type[AnyModel], given: Schema | None) -> Schema:
    """Columns and target for an estimator."""
    if given is not None:
        return Schema(given.features, given.target)
    return Schema(FEATURES, Category("y", ["a", "b"]) if is_classifier(estimator()) else Numeric("y", -5, 5))


def _attacks(attacked: Attacked, quick: bool) -> Iterator[Finding]:
    pairs = list(attacked.rows.pairs(int(str(attacked.setting.get("rows_per_person", 1)))))
    if not attacked.setting or not quick:
        yield attack_black_box(attacked, pairs[0], QUICK_RUNS if quick else FULL_RUNS)
    yield from attack_replay(attacked, pairs, QUICK_STEPS if quick else FULL_STEPS)
    yield attack_order(attacked, pairs[0])
    yield attack_ledger(attacked, pairs[0])


def attack_black_box(attacked: Attacked, pair: Neighbours, runs: int) -> Finding:
    """Whole fits with secret noise on two tables, distinguished by their fitted attributes."""
    delta = float(str(attacked.setting.get("delta", 0.0)))
    result = black_box(
        lambda table: attacked.model(pair.adjacency, ledger=spacious_ledger()).fit(table),
        attacked.frame(pair, pair.left),
        attacked.frame(pair, pair.right),
        EPSILON,
        delta,
        runs,
    )
    return attacked.finding(
        "black box", (EPSILON, result.lower_bound), result.runs, result.statistic if result.violated else ""
    )


def attack_replay(attacked: Attacked, pairs: list[Neighbours], steps: int) -> Iterator[Finding]:
    """Built-in neighbours, then hill climbing from the worst of them; one line for each, over both adjacencies."""
    tried = [(compared(*attacked.fitted(pair)), pair) for pair in pairs]
    yield _worst(attacked, "replay", tried)
    climbed: list[tuple[Replay, Neighbours]] = []
    for adjacency in ("replace-one", "add-remove"):
        best, pair = max(((one, own) for one, own in tried if own.adjacency == adjacency), key=lambda one: one[0].ratio)
        for _ in range(steps):
            next_pair = _moved(attacked.rows, pair)
            replay = compared(*attacked.fitted(next_pair))
            climbed.append((replay, next_pair))
            if replay.ratio >= best.ratio:
                best, pair = replay, next_pair
    yield _worst(attacked, "worst rows", climbed)


def _moved(rows: RowMaker, pair: Neighbours) -> Neighbours:
    """The pair with another value in one row of the person."""
    side = "left" if pair.left and rows.below(2) else "right"
    own = list(pair.left if side == "left" else pair.right)
    place = rows.below(len(own))
    own[place] = rows.mutated(own[place])
    return replace(pair, left=tuple(own)) if side == "left" else replace(pair, right=tuple(own))


def _worst(attacked: Attacked, attack: str, tried: list[tuple[Replay, Neighbours]]) -> Finding:
    replay, pair = max(tried, key=lambda one: (bool(one[0].faults), one[0].ratio))
    faults = "; ".join((pair.name, *(replay.faults or ("moves too far",)))) if exceeds(replay) else ""
    return attacked.finding(attack, (replay.claimed, replay.found), len(tried), faults)


def attack_order(attacked: Attacked, pair: Neighbours) -> Finding:
    """The same bits under one seed, for permuted rows and for other batches."""
    rows = (*pair.crowd, *pair.left)
    tables = [(rows, 0), (rows[::-1], 0), ((*rows[5:], *rows[:5]), 3), (rows, 1)]
    found = set()
    for own, cut in tables:
        with noise_from(RecordingNoise(7)):
            model = attacked.model(ledger=spacious_ledger()).fit(attacked.rows.frame(own, cut))
        found.add(b"".join(np.ravel(value).tobytes() for _, value in sorted(_arrays(model).items())))
    return attacked.finding("order", (None, None), len(tables), "bits depend on the order" if len(found) > 1 else "")


def _arrays(model: AnyModel) -> dict[str, np.ndarray]:
    return {
        name: np.asarray(value)
        for name, value in vars(model).items()
        if name.endswith("_") and isinstance(value, np.ndarray | float)
    }


def attack_ledger(attacked: Attacked, pair: Neighbours) -> Finding:
    """An entry before the first draw, at the price that was asked; nothing drawn where the budget is too small."""
    table, faults = attacked.frame(pair, pair.left), []
    seen = watched_fit(lambda ledger: attacked.model(ledger=ledger), table)
    if not seen.noise.watched or min(seen.noise.watched) < 1:
        faults.append("noise is drawn before the charge")
    if [event.epsilon for event in seen.events] != [EPSILON] and not any(event.rho for event in seen.events):
        faults.append(f"charged {[event.epsilon for event in seen.events]}")
    delta = float(str(attacked.setting.get("delta", 0.0)))  # with a larger one, less epsilon would do
    small, noise = Ledger(epsilon=EPSILON / 2, delta=delta), RecordingNoise(3)
    try:
        with noise_from(noise):
            attacked.model(ledger=small).fit(table)
        faults.append("a budget that is too small is not refused")
    except BudgetExceeded:
        pass
    if noise.calls or small.n_entries:
        faults.append("a refusal draws or charges")
    return attacked.finding("ledger", (None, None), 2, "; ".join(faults))
