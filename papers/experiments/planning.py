"""Forecast against measured loss: pf.plan with a public sample of 500 rows, beside fits on the real tables.

    PRIVFIT_DATA=folder python papers/experiments/planning.py [repetitions]

Printed for Adult, Bank (logistic) and the 1980 census (linear) at epsilon 0.1, 0.4 and 1.6: what each mechanism loses
against the fit without noise, forecast and measured (fits with other seeds on random 80/20 splits of the real table).
The 500 rows of the sample are in neither part of a split. The reference is the same on both sides. At the end: how
many cells of the default mechanism are within 15%, and in how many the mechanisms come in the measured order.
"""

from __future__ import annotations

import sys

import numpy as np

import privfit as pf
from privfit.planning.simulation import NO_NOISE, Repetition, Settings, without_noise
from privfit.privacy import seeded_generator
from privfit_papers.bench.classes import adult, bank
from privfit_papers.bench.data import census_1980, data_folder

EPSILONS = (0.1, 0.4, 1.6)
SAMPLE = 500
MECHANISMS = {"logistic": ("auto", "output", "functional"), "linear": ("auto", "functional", "adassp")}


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    folder = data_folder()
    near = ranked = cells = 0
    for name, load, model in (
        ("Adult", adult, "logistic"),
        ("Bank", bank, "logistic"),
        ("census", census_1980, "linear"),
    ):
        frame, schema = load(folder)
        frame = frame[seeded_generator(1).permutation(frame.height)]
        sample, rest = frame.head(SAMPLE), frame.tail(frame.height - SAMPLE)
        cut = int(0.8 * rest.height)
        settings = Settings(model, cut, cut, 1, {})
        splits = []
        for seed in range(repetitions):
            order = seeded_generator(100 + seed).permutation(rest.height)
            splits.append(Repetition(rest[order[:cut]], rest[order[cut:]], 1000 + seed))
        names = MECHANISMS[model]
        plan = pf.plan(
            schema,
            cut,
            model=model,
            epsilon=EPSILONS,
            public=sample,
            mechanisms=names,
            repetitions=repetitions,
            costs=False,
        )
        base = np.mean([one.score(without_noise(settings), schema, "auto", NO_NOISE) for one in splits])
        print(f"{name}: without noise forecast {plan.reference:.4f}, measured {base:.4f}")
        for epsilon in EPSILONS:
            real = {m: base - np.mean([one.score(settings, schema, m, epsilon) for one in splits]) for m in names}
            told = {m: plan.reference - f.score for m in names for f in plan.curve(m) if f.epsilon == epsilon}
            near += abs(told["auto"] - real["auto"]) <= 0.15 * abs(real["auto"])
            ranked += sorted(names, key=real.__getitem__) == sorted(names, key=told.__getitem__)
            cells += 1
            pairs = ", ".join(f"{m} {told[m]:.4f} / {real[m]:.4f}" for m in names)
            print(f"  epsilon {epsilon:g}, lost, forecast / measured: {pairs}", flush=True)
    print(f"default within 15%: {near} of {cells}; mechanisms in the measured order: {ranked} of {cells}")


if __name__ == "__main__":
    main()
