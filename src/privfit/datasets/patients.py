"""Generated hospital stays: a row for each stay, several for some patients, and values that are missing.

The patients are made up: attributes are drawn one after the other, so that age, ward, length of stay, costs and
readmission hang together. No number here was fitted to a hospital.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.privacy import Seeded, seeded_generator
from privfit.schema import Category, Column, Numeric, Schema

DEFAULT_PATIENTS = 12_000
"""A hospital's year or so. Chosen, not measured."""
DEFAULT_SEED = 2008
"""Public: the generated patients are the same everywhere."""
WARDS = ("internal", "surgery", "cardiology", "neurology", "geriatrics", "other")
MOST_STAYS = 6
"""Of a patient: so that `rows_per_person` has something to choose. Chosen, not measured."""

Floats = NDArray[np.float64]


def patients_schema(target: Literal["readmitted", "cost"] = "readmitted") -> Schema:
    """Public facts about the generated hospital stays, from knowledge of the world and not from the rows.

    Parameters
    ----------
    target : {'readmitted', 'cost'}, default='readmitted'
        What is predicted: whether a patient comes back within 30 days, or the cost of the stay in euros.

    Returns
    -------
    Schema
        Bounds and levels of the columns, the target, and `patient_id` as the person column.

    See Also
    --------
    load_patients : The stays and this schema.

    Examples
    --------
    >>> import privfit as pf
    >>> pf.datasets.patients_schema("cost").target.name
    'cost'
    """
    goals: dict[str, Column] = {"readmitted": Category("readmitted", ["no", "yes"]), "cost": Numeric("cost", 0, 60_000)}
    if target not in goals:
        raise ValueError(f"The patients have no target {target!r}; they have {list(goals)}. Choose one of them.")
    features: list[Column] = [
        Numeric("age", 18, 105),
        Category("sex", ["female", "male"]),
        Category("ward", list(WARDS)),
        Category("emergency", ["no", "yes"]),
        Numeric("earlier_stays", 0, 20),
        Numeric("days", 0, 45),
        Numeric("medicines", 0, 25),
        Numeric("haemoglobin", 4, 20, fill="missing"),
    ]
    return Schema(features, goals[target], person="patient_id")


def generated_patients(n_patients: int = DEFAULT_PATIENTS, seed: int = DEFAULT_SEED) -> pl.DataFrame:
    """Generate hospital stays, one a row, the same for the same seed.

    Parameters
    ----------
    n_patients : int, default=12000
        How many patients there are; each has one to six stays.
    seed : int, default=2008
        Which patients.

    Returns
    -------
    polars.DataFrame
        The stays.

    See Also
    --------
    load_patients : The default ones, as shipped, with their schema.

    Examples
    --------
    >>> import privfit as pf
    >>> pf.datasets.generated_patients(100)["patient_id"].n_unique()
    100
    """
    if n_patients < 1:
        raise ValueError(
            f"n_patients={n_patients} was given; a hospital has at least one. Write, for example, n_patients=12_000."
        )
    draw = seeded_generator(seed)
    frailty = draw.normal(0, 1, n_patients)
    stays = np.minimum(1 + draw.poisson(np.exp(-0.7 + 0.5 * frailty)), MOST_STAYS)
    patient = np.repeat(np.arange(n_patients), stays)
    age = np.clip(np.rint(57 + 19 * draw.normal(0, 1, n_patients) + 5 * frailty), 18, 101)
    return _stays(draw, patient, frailty[patient], age[patient], (draw.random(n_patients) < 0.48)[patient])


def _stays(
    draw: Seeded, patient: NDArray[np.int64], frailty: Floats, age: Floats, male: NDArray[np.bool_]
) -> pl.DataFrame:
    """The stays of patients, attribute by attribute; each may look at those before it."""
    rows = len(patient)
    ward = _wards(draw, age)
    emergency = draw.random(rows) < _logistic(-0.6 + 0.02 * (age - 57) + 0.3 * frailty)
    earlier = np.minimum(draw.poisson(np.exp(0.1 + 0.6 * frailty + 0.008 * (age - 57))), 12)
    longer = np.array([0.1, 0.0, 0.05, 0.2, 0.5, -0.3])[ward]
    days = np.clip(
        np.rint(np.exp(1.2 + longer + 0.25 * emergency + 0.15 * frailty + 0.5 * draw.normal(size=rows))), 1, 45
    )
    medicines = np.minimum(draw.poisson(np.exp(1.3 + 0.01 * (age - 57) + 0.2 * frailty)), 25)
    blood = 13.4 + 1.1 * male - 0.6 * frailty - 0.012 * (age - 57) + 1.3 * draw.normal(size=rows)
    measured = draw.random(rows) < 0.75 + 0.2 * emergency
    a_day = 480 + np.array([40, 380, 300, 180, -60, 0])[ward]
    cost = np.round((900 + a_day * days + 60 * medicines) * np.exp(0.3 * draw.normal(size=rows)), -1)
    back = draw.random(rows) < _logistic(
        -2.7
        + 0.35 * np.minimum(earlier, 5)
        + 0.5 * emergency
        + 0.05 * medicines
        - 0.25 * (blood - 13)
        + 0.5 * (ward == 4)
        + 0.6 * (days <= 2) * emergency
    )
    return pl.DataFrame(
        {
            "patient_id": [f"p{number:05d}" for number in patient],
            "age": age.astype(np.int64),
            "sex": np.where(male, "male", "female"),
            "ward": np.array(WARDS)[ward],
            "emergency": np.where(emergency, "yes", "no"),
            "earlier_stays": earlier.astype(np.int64),
            "days": days.astype(np.int64),
            "medicines": medicines.astype(np.int64),
            "haemoglobin": [
                round(float(value), 1) if known else None for value, known in zip(blood, measured, strict=True)
            ],
            "cost": cost.astype(np.int64),
            "readmitted": np.where(back, "yes", "no"),
        }
    )


def _wards(draw: Seeded, age: Floats) -> NDArray[np.int64]:
    """Where a stay is: geriatrics for the old, the others by their size."""
    others = np.array([0.34, 0.26, 0.16, 0.1, 0.0, 0.14])
    chosen = np.searchsorted(np.cumsum(others), draw.random(len(age)), side="right")
    return np.where(draw.random(len(age)) < 0.5 * _logistic((age - 82) / 4), 4, np.minimum(chosen, 5))


def _logistic(value: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-value)), dtype=np.float64)
