"""What a private search among eight settings reaches, beside each setting by itself at the epsilon of one fit.

PRIVFIT_DATA=folder python papers/experiments/search.py
"""

from __future__ import annotations

import numpy as np

import privfit as pf
from privfit_papers.bench.classes import adult, bank
from privfit_papers.bench.data import data_folder

SPLITS = 8
SETTINGS = [
    *({"mechanism": pf.ObjectivePerturbation(ridge=ridge)} for ridge in (1.0, 10.0, 100.0, 1000.0)),
    {"mechanism": "objective"},
    {"mechanism": "objective", "numeric": "bins"},
    {"mechanism": "output"},
    {"mechanism": "functional"},
]


def main() -> None:
    """Print a line per split and table."""
    for load in (adult, bank):
        frame, schema = load(data_folder())
        assert schema.target is not None
        goal, base = schema.target.name, pf.LogisticRegression(schema=schema)
        alone, found = [], []
        for seed in range(SPLITS):
            mixed = frame.sample(fraction=1.0, shuffle=True, seed=seed)
            test, train = mixed.head(len(mixed) // 5), mixed.tail(len(mixed) - len(mixed) // 5)
            X, y = test.drop(goal), test[goal].to_numpy()
            models = [pf.LogisticRegression(1 / 3, schema=schema, random_state=seed, **one) for one in SETTINGS]
            alone.append([model.fit(train).score(X, y) for model in models])
            search = pf.PrivateSearch(base, SETTINGS, epsilon=1.0, random_state=seed).fit(train)
            found.append(search.score(X, y))
            print(f"{load.__name__}: setting {search.best_index_} {found[-1]:.4f}, alone {np.round(alone[-1], 4)}")
        best = int(np.mean(alone, axis=0).argmax())
        short = np.array(found) - np.array(alone)[:, best]
        itself = np.mean(alone, axis=0)[best]
        print(
            f"{load.__name__}: search {np.mean(found):.4f}, setting {best} by itself {itself:.4f}; "
            f"difference {short.mean():+.4f} (sd {short.std(ddof=1):.4f}), worst {short.min():+.4f}"
        )


if __name__ == "__main__":
    main()
