"""The methods of the PrivGene paper on one fold, for every epsilon: wrong classes of logistic regression and of support
vector machines.

Noise is seeded and test rows are looked at: nothing here is a private release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC as PlainSVC

from privfit.baselines import Majority, NoPrivacy, PrivateERM
from privfit.losses.margins import GRAIN
from privfit.mechanisms import Generation, PrivGene
from privfit.mechanisms.genetic.weights import on_lattice
from privfit.models import LinearSVC, LogisticRegression
from privfit.privacy import PrivacyError, SeededNoise
from privfit_papers.bench.kept_sums import FunctionalOnce
from privfit_papers.bench.papers.privgene.gupt import GuptOnce
from privfit_papers.bench.papers.privgene.tables import SECOND, Fold

Floats = NDArray[np.float64]
Kind = Literal["logistic", "svm"]
Found = tuple[str, float, float]
"""A method, an epsilon, and the error there."""
Seeds = Callable[..., int]
"""A seed for a purpose."""

GENES, GENES_PRINTED = "PrivGene", "PrivGene as printed"
ERM, TUNED_ERM, SHORT_ERM = "PrivateERM", "PrivateERM, tuned", "PrivateERM, shorter rows"
FM, SVM, GUPT, NO_PRIVACY, MAJORITY = "FM", "PrivateSVM", "GUPT", "NoPrivacy", "Majority"
OURS, PATTERNS = "privfit", "privfit, all patterns"
C = 10.0
"""What multiplies the hinge loss in the paper, for all but NoPrivacy."""
TRIED = (0.01, 0.1, 1.0)
"""For NoPrivacy, of which the paper takes the best."""
UNIT = 1 << 10
"""Steps of 2^-10 that the weights of PrivateSVM are rounded to."""
STEPS = 30
"""Of scikit-learn's solver, whose result here meets noise of a thousand times its size."""


def model(kind: Kind, epsilon: float, fold: Fold, seed: int, mechanism: Any = "auto", loss: str = "hinge") -> Any:
    """An unfitted classifier of privfit."""
    if kind == "logistic":
        return LogisticRegression(epsilon, schema=fold.schema, mechanism=mechanism, random_state=seed)
    return LinearSVC(epsilon, loss=loss, schema=fold.schema, mechanism=mechanism, random_state=seed)


def _error(fold: Fold, unfitted: Any) -> float:
    return fold.error(unfitted.fit(fold.split.train).decision_function(fold.split.test))


def printed_genes(kind: Kind, **settings: Any) -> PrivGene:
    """Algorithm 1 as printed: no parent stays among the candidates; with the printed C for support vector machines."""
    weight = None if kind == "logistic" else C
    return replace(PrivGene("enhanced", moves="genes", elitism=False, C=weight), **settings)


# -- groups of methods -----------------------------------------------------------------------------


def genes(kind: Kind, fold: Fold, epsilons: Sequence[float], seed: Seeds) -> Iterator[Found]:
    """The paper's algorithm with the enhanced mechanism; for a hinge also with the paper's constants, which are not
    private.
    """
    methods = {GENES: printed_genes(kind)}
    if kind == "svm":
        methods[GENES_PRINTED] = printed_genes(kind, calibration="paper")
    for method, mechanism in methods.items():
        for epsilon in epsilons:
            yield method, epsilon, _error(fold, model(kind, epsilon, fold, seed(method, epsilon), mechanism))


def risks(kind: Kind, fold: Fold, epsilons: Sequence[float], seed: Seeds) -> Iterator[Found]:
    """PrivateERM on rows as the paper has them, with its Lambda and a tuned one; and on rows that are as long as the
    schema says.
    """
    loss = "logistic" if kind == "logistic" else "huber"
    train, classes, test = fold.plain
    for epsilon in epsilons:
        for method, more in ((ERM, {}), (TUNED_ERM, {"regularisation": "tune"})):
            erm = PrivateERM(epsilon, loss=loss, schema=fold.plain_schema, random_state=seed(method, epsilon), **more)  # type: ignore[arg-type]
            with suppress(PrivacyError):  # no certified minimum, no fit: the line has a gap
                yield method, epsilon, fold.error(erm.fit(train, classes).decision_function(test))
        short = PrivateERM(epsilon, loss=loss, schema=fold.schema, random_state=seed(SHORT_ERM, epsilon))
        yield SHORT_ERM, epsilon, _error(fold, short)


def others(kind: Kind, fold: Fold, epsilons: Sequence[float], seed: Seeds) -> Iterator[Found]:
    """What is fitted once and noised for every epsilon, and what has no noise."""
    blocks = GuptOnce()
    special = _functional if kind == "logistic" else _machine
    reference = _best(fold) if kind == "svm" else _wrong(fold, NoPrivacy("logistic", schema=fold.schema))
    yield from special(fold, epsilons, seed)
    for epsilon in epsilons:
        yield GUPT, epsilon, _error(fold, model(kind, epsilon, fold, seed(GUPT, epsilon), blocks))
        yield (
            MAJORITY,
            epsilon,
            _wrong(fold, Majority(epsilon, schema=fold.schema, random_state=seed(MAJORITY, epsilon))),
        )
        yield NO_PRIVACY, epsilon, reference


def ours(kind: Kind, fold: Fold, epsilons: Sequence[float], seed: Seeds) -> Iterator[Found]:
    """privfit's default, and its own genetic search."""
    for epsilon in epsilons:
        yield OURS, epsilon, _error(fold, model(kind, epsilon, fold, seed(OURS, epsilon), loss="huber"))
        yield PATTERNS, epsilon, _error(fold, model(kind, epsilon, fold, seed(PATTERNS, epsilon), "genetic"))


GROUPS: Mapping[str, Callable[[Kind, Fold, Sequence[float], Seeds], Iterator[Found]]] = {
    "genes": genes,
    "risks": risks,
    "others": others,
    "ours": ours,
}


# -- single methods --------------------------------------------------------------------------------


def _functional(fold: Fold, epsilons: Sequence[float], seed: Seeds) -> Iterator[Found]:
    """The functional mechanism as printed, from sums that are kept."""
    mechanism = FunctionalOnce(calibration="paper", repair="trim")
    for epsilon in epsilons:
        yield FM, epsilon, _error(fold, model("logistic", epsilon, fold, seed(FM, epsilon), mechanism))


def _machine(fold: Fold, epsilons: Sequence[float], seed: Seeds) -> Iterator[Found]:
    """PrivateSVM: the minimum with C beside a sum over rows, and the printed noise on it, Laplace of scale 4 C K
    sqrt(F) / epsilon, K the length of a row and F the number of weights.

    Its ridge is so small that no solver reaches the precision which privfit's own baseline certifies; scikit-learn's
    minimum, not certified, will do beside such noise.
    """
    train, classes, test = fold.plain
    found = PlainSVC(C=C, loss="hinge", fit_intercept=False, max_iter=STEPS, random_state=0).fit(
        _with_constant(train), classes == SECOND
    )
    weights = found.coef_[0]
    norm = fold.plain_schema.geometry(numeric="slope", target=False).l2
    for epsilon in epsilons:
        scale = 4 * C * norm * math.sqrt(len(weights)) / epsilon
        noisy = SeededNoise(seed(SVM, epsilon)).laplace(np.rint(weights * UNIT).astype(np.int64), scale * UNIT) / UNIT
        yield SVM, epsilon, fold.error(_with_constant(test) @ noisy)


def _with_constant(rows: Floats) -> Floats:
    return np.column_stack([np.ones(len(rows)), rows])


def _best(fold: Fold) -> float:
    """The least error of support vector machines without noise, over several values of C, by the test rows."""
    return min(
        _wrong(fold, NoPrivacy(PlainSVC(C=value, loss="hinge", random_state=0), schema=fold.schema)) for value in TRIED
    )


def _wrong(fold: Fold, unfitted: Any) -> float:
    """The error of what predicts classes."""
    predicted = np.asarray(unfitted.fit(fold.split.train).predict(fold.split.test)).astype(str)
    return float(np.mean((predicted == str(sorted(fold.split.target.levels)[1])) != fold.truth))


# -- iterations ------------------------------------------------------------------------------------


@dataclass
class Trace:
    """A crossover that changes nothing and keeps the parent of every generation: each was chosen privately."""

    parents: dict[int, Floats] = field(default_factory=dict)

    def __call__(self, first: Floats, second: Floats, generation: Generation) -> tuple[Floats, Floats]:
        """The pairs as they are."""
        self.parents[generation.number] = first[0]
        return first, second


def traced_errors(
    kind: Kind, fold: Fold, epsilon: float, selection: Literal["enhanced", "exponential"], seed: int
) -> list[float]:
    """The error after every iteration."""
    trace = Trace()
    mechanism = printed_genes(kind, selection=selection, crossover=trace)
    last = _error(fold, model(kind, epsilon, fold, seed, mechanism))
    return [*(fold.error(fold.tested @ (on_lattice(weights) / GRAIN)) for weights in trace.parents.values()), last]


def error_after(kind: Kind, fold: Fold, epsilon: float, rounds: int, seed: int) -> float:
    """The error of the paper's algorithm with so many iterations."""
    return _error(fold, model(kind, epsilon, fold, seed, printed_genes(kind, rounds=rounds)))


def default_error(kind: Kind, fold: Fold, epsilon: float, seed: int) -> float:
    """The error of privfit's default."""
    return _error(fold, model(kind, epsilon, fold, seed, loss="huber"))
