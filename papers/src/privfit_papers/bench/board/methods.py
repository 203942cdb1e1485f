"""Who is on the board: every method, what it promises, and the environment that it runs in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DELTA = 1e-6
"""That of every method that needs one, and of privfit beside them."""


@dataclass(frozen=True)
class Environment:
    """A peer's own environment: its script in peers/ and what is installed for it. None is needed for `here`."""

    name: str
    script: str
    packages: tuple[str, ...] = ()

    @property
    def here(self) -> bool:
        """Whether it runs with this interpreter."""
        return not self.packages


OWN = Environment("own", "own")
PLAIN = Environment("plain", "plain")
DIFFPRIVLIB = Environment("diffprivlib", "dpl", ("diffprivlib==0.6.6", "scikit-learn==1.7.2"))
DP_EBM = Environment("dp-ebm", "dpebm", ("interpret-core==0.7.8",))
DPMM = Environment("dpmm", "synthetic", ("dpmm==0.1.9",))
DP_XGBOOST = Environment("dp-xgboost", "dpxgb", ("dp-xgboost==0.2.10", "numpy==1.26.4", "scipy==1.13.1"))

Promise = Literal["pure", "delta", "none"]


@dataclass(frozen=True)
class Method:
    """A line of the board.

    Parameters
    ----------
    name : as it is shown.
    environment : where it runs.
    asked : what its script calls it.
    tasks : what it can predict.
    promise : epsilon alone, epsilon and delta, or no privacy.
    about : what it is and what its promise is for, in a phrase.
    """

    name: str
    environment: Environment
    asked: str
    tasks: tuple[str, ...]
    promise: Promise
    about: str
    own: bool = False

    @property
    def file_name(self) -> str:
        """Its name in the names of files."""
        return self.name.replace(",", "").replace(" ", "-")


CLASSES, NUMBERS = ("classes",), ("numbers",)
BOTH = CLASSES + NUMBERS
ONE_ROW_REPLACED, ONE_ROW_MORE = "one row replaced", "one row more or less"
OURS, OURS_WITH_DELTA = "privfit", "privfit, delta"

METHODS = (
    Method(OURS, OWN, "additive", BOTH, "pure", f"AdditiveClassifier or AdditiveRegressor; {ONE_ROW_REPLACED}", True),
    Method(OURS_WITH_DELTA, OWN, "additive", BOTH, "delta", f"the same with a delta; {ONE_ROW_REPLACED}", True),
    Method(
        "privfit lines",
        OWN,
        "lines",
        BOTH,
        "pure",
        f"LinearRegression, or LogisticRegression with slopes; {ONE_ROW_REPLACED}",
        True,
    ),
    Method("privfit lines, delta", OWN, "lines", BOTH, "delta", f"the same with a delta; {ONE_ROW_REPLACED}", True),
    Method(
        "diffprivlib",
        DIFFPRIVLIB,
        "logistic",
        CLASSES,
        "pure",
        f"LogisticRegression with its default C; {ONE_ROW_REPLACED}",
    ),
    Method(
        "diffprivlib tuned",
        DIFFPRIVLIB,
        "tuned",
        CLASSES,
        "pure",
        "the same with the best C for the test rows, which is not private",
    ),
    Method("diffprivlib bayes", DIFFPRIVLIB, "bayes", CLASSES, "pure", f"GaussianNB; {ONE_ROW_MORE}"),
    Method("diffprivlib forest", DIFFPRIVLIB, "forest", CLASSES, "pure", f"RandomForestClassifier; {ONE_ROW_MORE}"),
    Method("diffprivlib linear", DIFFPRIVLIB, "linear", NUMBERS, "pure", f"LinearRegression; {ONE_ROW_REPLACED}"),
    Method("DP-EBM classes", DP_EBM, "classes", CLASSES, "delta", f"interpret's additive boosting; {ONE_ROW_MORE}"),
    Method("DP-EBM numbers", DP_EBM, "numbers", NUMBERS, "delta", f"interpret's additive boosting; {ONE_ROW_MORE}"),
    Method("boosted AdaSSP", OWN, "adassp", NUMBERS, "delta", f"as printed, 100 rounds; {ONE_ROW_MORE}"),
    Method("TukeyEM", OWN, "tukey", NUMBERS, "delta", f"as printed, 1000 log(3) / epsilon fits; {ONE_ROW_MORE}"),
    Method("dp-xgboost", DP_XGBOOST, "trees", BOTH, "pure", f"boosted trees, 20 of them; {ONE_ROW_MORE}"),
    Method("MST + boosting", DPMM, "mst", BOTH, "delta", f"boosting on dpmm's synthetic rows; {ONE_ROW_MORE}"),
    Method("constant", PLAIN, "constant", BOTH, "none", "the mean, or the share of the second class"),
    Method("least squares", PLAIN, "squares", NUMBERS, "none", "without privacy"),
    Method("logistic regression", PLAIN, "logistic", CLASSES, "none", "without privacy"),
    Method("boosting", PLAIN, "boosting", BOTH, "none", "scikit-learn's gradient boosting without privacy"),
)
