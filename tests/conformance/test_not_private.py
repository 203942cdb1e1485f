"""Settings that are not private say so wherever they are used: a mechanism that is given rows, a ledger and secret
noise refuses the ledger itself, before anything is read, and never calls its release private.

Every mechanism there is does the same with noise that is not secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.baselines.no_privacy import AsItIs
from privfit.baselines.truncated import Noiseless
from privfit.losses import LOGISTIC
from privfit.losses.quadratic import SQUARED
from privfit.mechanisms import Clusters, ERMProblem, GeneticCentres, PrivGene, QuadraticProblem, clusterer
from privfit.mechanisms.reweighting.base import ReweightingProblem
from privfit.mechanisms.reweighting.density_ratio import DensityRatio
from privfit.models.kmeans import KMeans
from privfit.privacy import Budget, PrivacyParameters, noise_source
from privfit.rows import PlainRows, Rows
from privfit.tables import open_table
from tests.conformance.flow_settings import all_settings, known_mechanisms
from tests.conformance.flow_tables import uniform
from tests.support.beats import assert_told_in_order
from tests.support.noise import RecordingNoise

HINGE = pf.losses.hinge()
CLASSES = pf.Schema([pf.Numeric("x", -1, 1), pf.Category("c", ["u", "v"])], target=pf.Category("y", ["a", "b"]))
NUMBERS = pf.Schema([pf.Numeric("x", -1, 1), pf.Numeric("z", -1, 1)])
NUMBER = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))


@dataclass(frozen=True)
class Case:
    """A mechanism, what it minimises, and how its rows are encoded."""

    mechanism: Any
    objective: Any
    schema: pf.Schema
    numeric: str | None = None

    def rows(self) -> Rows:
        rng = np.random.default_rng(3)
        columns = {
            column.name: rng.uniform(-1, 1, 40) if isinstance(column, pf.Numeric) else rng.choice(column.levels, 40)
            for column in (*self.schema.features, *([] if self.schema.target is None else [self.schema.target]))
        }
        import polars as pl

        return Rows(open_table(pl.DataFrame(columns)), self.schema, self.geometry())

    def geometry(self) -> Any:
        if isinstance(self.mechanism, AsItIs):
            return self.mechanism.geometry(self.schema)
        if self.numeric is not None:
            return self.mechanism.geometry(self.schema, self.objective, self.numeric)
        return self.mechanism.geometry(self.schema, self.objective)

    def release(self, ledger: pf.Ledger | None, noise: Any) -> Any:
        return self.mechanism.release(self.rows(), PrivacyParameters(Budget(1.0)), ledger, noise, self.objective)


def printed(**settings: Any) -> PrivGene:
    return PrivGene(calibration="paper", rounds=2, candidates=6, **settings)


class Fitted:
    """Stands in for a model of scikit-learn: what it is told is not looked at."""

    def fit(self, design: Any, target: Any = None) -> Fitted:
        return self


PRINTED_2008 = pf.ObjectivePerturbation(ridge=3.0, calibration="paper")
NOT_PRIVATE = {
    "PrivGene as printed, hinge": Case(printed(), ERMProblem(HINGE), CLASSES, "slope"),
    "PrivGene as printed, several parents": Case(printed(parents=2), ERMProblem(HINGE), CLASSES, "slope"),
    "PrivGene as printed, by change": Case(printed(selection="exponential"), ERMProblem(HINGE), CLASSES, "slope"),
    "PrivGene as printed, smooth hinge": Case(printed(), ERMProblem(pf.losses.smooth_hinge(0.5)), CLASSES, "slope"),
    "PrivGene as printed, k-means": Case(GeneticCentres(printed()), Clusters(2), NUMBERS),
    "PrivGene as printed, adapted to k-means": Case(clusterer(printed()), Clusters(2), NUMBERS),
    "objective perturbation as printed in 2008": Case(PRINTED_2008, ERMProblem(LOGISTIC), CLASSES, "slope"),
    "a choice that has it": Case(
        pf.TunedPerturbation(candidates=(PRINTED_2008,)), ERMProblem(LOGISTIC), CLASSES, "slope"
    ),
    "NoPrivacy": Case(AsItIs(Fitted(), True), CLASSES, CLASSES),
    "Truncated": Case(Noiseless(repair=None, noise="laplace"), QuadraticProblem(SQUARED), NUMBER, "slope"),
}
PRIVATE = {
    "PrivGene as printed, logistic": Case(printed(), ERMProblem(LOGISTIC), CLASSES, "slope"),
    "objective perturbation": Case(pf.ObjectivePerturbation(ridge=3.0), ERMProblem(LOGISTIC), CLASSES, "slope"),
    "PrivGene, hinge": Case(PrivGene(moves="genes", rounds=2, candidates=6), ERMProblem(HINGE), CLASSES, "slope"),
    "PrivGene, k-means": Case(GeneticCentres(PrivGene(moves="genes", rounds=2, candidates=6)), Clusters(2), NUMBERS),
}


@pytest.mark.parametrize("case", NOT_PRIVATE.values(), ids=NOT_PRIVATE)
def test_a_mechanism_that_is_not_private_refuses_a_ledger_before_anything_is_read(case, monkeypatch) -> None:
    ledger, noise = pf.Ledger(epsilon=5.0), RecordingNoise()
    monkeypatch.setattr(Rows, "batches", lambda self: pytest.fail("rows were read"))
    monkeypatch.setattr(PlainRows, "read", lambda self: pytest.fail("rows were read"))
    with pytest.raises(pf.PrivacyError) as error:
        case.release(ledger, noise)
    assert_told_in_order(
        str(error.value), ["A ledger was given", "not private", "takes private fits only", "leave out the ledger"]
    )
    assert ledger.entries() == []
    assert noise.calls == []


@pytest.mark.parametrize("case", NOT_PRIVATE.values(), ids=NOT_PRIVATE)
def test_its_release_is_not_called_private_whatever_the_noise(case) -> None:
    noise = RecordingNoise()
    assert noise.private
    assert not case.release(None, noise).private


@pytest.mark.parametrize("case", PRIVATE.values(), ids=PRIVATE)
def test_the_private_settings_beside_them_are_charged_and_called_private(case) -> None:
    ledger = pf.Ledger(epsilon=5.0)
    assert case.release(ledger, RecordingNoise()).private
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    ("model", "case"),
    [
        (pf.LinearSVC(schema=CLASSES, loss="hinge", mechanism=printed()), "PrivGene as printed, hinge"),
        (KMeans(2, schema=NUMBERS, mechanism=printed()), "PrivGene as printed, k-means"),
        (
            pf.LogisticRegression(schema=CLASSES, mechanism=PRINTED_2008, numeric="slope"),
            "objective perturbation as printed in 2008",
        ),
        (pf.baselines.NoPrivacy(schema=CLASSES), "NoPrivacy"),
    ],
)
def test_an_estimator_says_what_its_mechanism_says(model, case) -> None:
    import polars as pl

    mechanism = NOT_PRIVATE[case].mechanism
    (reason,) = mechanism.reasons_not_private(NOT_PRIVATE[case].objective)
    frame = pl.DataFrame(
        {"x": np.linspace(-1, 1, 20), "z": np.linspace(1, -1, 20), "c": ["u", "v"] * 10, "y": ["a", "b"] * 10}
    )
    with pytest.raises(pf.PrivacyError) as error:
        model.set_params(ledger=pf.Ledger(epsilon=1.0)).fit(frame)
    assert reason in str(error.value)
    fitted = model.set_params(ledger=None).fit(frame)
    assert fitted.report_.not_private_because == (reason,)


MISSPELT = {
    "PrivGene": Case(PrivGene(moves="genes", calibration="Paper", candidates=6), ERMProblem(HINGE), CLASSES, "slope"),
    "GeneticCentres": Case(GeneticCentres(PrivGene(moves="genes", calibration="Paper")), Clusters(2), NUMBERS),
    "DensityRatio": Case(DensityRatio(rows="exact"), ReweightingProblem(None, 40), NUMBERS),
    "FunctionalMechanism": Case(
        pf.FunctionalMechanism(calibration="box"), QuadraticProblem(SQUARED, fit_intercept=False), NUMBER, "slope"
    ),
}


@pytest.mark.parametrize("case", MISSPELT.values(), ids=MISSPELT)
def test_a_setting_that_is_misspelt_is_refused_by_the_mechanism_itself(case, monkeypatch) -> None:
    """It would mean the printed constants, or nothing that was proved, and nobody would say so."""
    ledger, noise, rows = pf.Ledger(epsilon=5.0), RecordingNoise(), case.rows()
    monkeypatch.setattr(Rows, "batches", lambda self: pytest.fail("rows were read"))
    with pytest.raises(pf.PrivacyError, match="was given; it is"):
        case.mechanism.release(rows, PrivacyParameters(Budget(1.0)), ledger, noise, case.objective)
    assert ledger.entries() == []
    assert noise.calls == []


# -- noise that is not secret, with every mechanism there is ---------------------------------------


class Asked(Exception):
    """Carries the mechanism that a fit asks for a release, and what it is given."""


def mechanism_of(model: Any) -> Any:
    """What a fit asks for its release: the chosen mechanism, after counts of classes where these shall weigh alike."""
    chosen = model._chosen_mechanism()
    return model._weighed(chosen) if hasattr(model, "_weighed") else chosen


def of_every_mechanism() -> dict[str, Any]:
    """One setting a mechanism, by its name."""
    found: dict[str, Any] = {}
    for setting in all_settings():
        found.setdefault(type(mechanism_of(setting.model(None))).__name__, setting)
    return found


EVERY = of_every_mechanism()


def some_rows(schema: pf.Schema) -> Any:
    import polars as pl

    rng = np.random.default_rng(5)
    return pl.DataFrame(
        [uniform(schema.columns, rng) for _ in range(40)],
        schema=[column.name for column in schema.columns],
        orient="row",
    )


def asked_by_a_fit(setting: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """The mechanism of a setting, and the rows, terms and objective that its model hands to it."""

    def release(mechanism: Any, rows: Any, terms: Any, ledger: Any, noise: Any, objective: Any) -> Any:
        raise Asked(mechanism, rows, terms, objective)

    model = setting.model(pf.Ledger(epsilon=1e7, delta=0.5))
    with monkeypatch.context() as patched:
        patched.setattr(type(mechanism_of(model)), "release", release)
        with pytest.raises(Asked) as asked:
            setting.fit(model, some_rows(setting.schema))
    return asked.value.args


def test_every_mechanism_is_among_them() -> None:
    used: set[str] = set()
    for setting in EVERY.values():
        used |= {kind.__name__ for kind in type(mechanism_of(setting.model(None))).__mro__}
    assert known_mechanisms() - used == set()


@pytest.mark.parametrize("setting", EVERY.values(), ids=EVERY)
def test_a_mechanism_refuses_a_ledger_with_seeded_noise_before_anything_is_read(setting, monkeypatch) -> None:
    mechanism, rows, terms, objective = asked_by_a_fit(setting, monkeypatch)
    ledger = pf.Ledger(epsilon=1e7, delta=0.5)
    monkeypatch.setattr(Rows, "batches", lambda self: pytest.fail("rows were read"))
    with pytest.raises(pf.PrivacyError) as error:
        mechanism.release(rows, terms, ledger, noise_source(7), objective)
    assert_told_in_order(
        str(error.value), ["A ledger was given", "not secret", "the seed of the noise", "Nothing was charged"]
    )
    assert ledger.entries() == []


@pytest.mark.parametrize("setting", EVERY.values(), ids=EVERY)
def test_without_a_ledger_seeded_noise_is_taken_and_the_release_is_not_called_private(setting, monkeypatch) -> None:
    mechanism, rows, terms, objective = asked_by_a_fit(setting, monkeypatch)
    assert not mechanism.release(rows, terms, None, noise_source(7), objective).private
