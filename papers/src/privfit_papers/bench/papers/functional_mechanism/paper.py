"""Zhang, Zhang, Xiao, Yang, Winslett: Functional Mechanism (VLDB 2012), Figures 2 to 9: the figures, and what the paper
says about them.
"""

from __future__ import annotations

from privfit_papers.bench.claims import below, falls, within
from privfit_papers.bench.grid import Axis, Claim, Figure, Method, Paper
from privfit_papers.bench.papers.functional_mechanism import examples as example
from privfit_papers.bench.papers.functional_mechanism.checks import (
    beside,
    both,
    ends_within,
    less_steep,
    ratio_changes,
    stays,
)
from privfit_papers.bench.papers.functional_mechanism.fits import (
    CONSTANT,
    FM,
    FP,
    NO_PRIVACY,
    NOISELESS_FM,
    OURS,
    OURS_FUNCTIONAL,
    PUBLISHERS,
    TRUNCATED,
)
from privfit_papers.bench.papers.functional_mechanism.sweeps import DIMENSIONS, EPSILONS, RATES, SWEEPS
from privfit_papers.bench.papers.functional_mechanism.tables import brazil, men, people

LINEAR = ("US linear", "Brazil linear")
LOGISTIC = ("US logistic", "Brazil logistic")
PANELS = {
    "US linear": "(a) US, linear: mean squared error",
    "Brazil linear": "(b) Brazil, linear: mean squared error",
    "US logistic": "(c) US, logistic: misclassification rate",
    "Brazil logistic": "(d) Brazil, logistic: misclassification rate",
}
TIMED = {"US logistic": "(a) US", "Brazil logistic": "(b) Brazil"}
OTHERS = tuple(PUBLISHERS)
METHODS = (
    Method(FM),
    Method("DPME"),
    Method(FP),
    Method(NO_PRIVACY, "reference"),
    Method(TRUNCATED, "reference"),
    Method(NOISELESS_FM, "reference"),
    Method(CONSTANT, "reference"),
    Method(OURS, "ours"),
    Method(OURS_FUNCTIONAL, "ours"),
)
TIMED_METHODS = tuple(method for method in METHODS if method.name not in (NOISELESS_FM, CONSTANT))
SECONDS = "seconds"
NEGLIGIBLE = 1.05
"""What "almost identical", "negligible" and "comparable" are taken to mean: 5% more."""

DIMENSION_AXIS = Axis("dimensionality", ticks=DIMENSIONS)
RATE_AXIS = Axis("sampling rate", ticks=RATES)
EPSILON_AXIS = Axis("privacy budget ε", log=True, ticks=EPSILONS)
ERROR_AXIS = Axis("error", log=True)
TIME_AXIS = Axis("seconds of a fit", log=True)

PEOPLE_NOTE = "US is a generated census of 370,000 people with the paper's 14 attributes. "
MEN_NOTE = (
    "US is the 1980 census of men, 329,509 rows and 6 columns (14 attributes as the paper encodes them); a wage is "
    "high above 400 dollars a week. "
)
BRAZIL_NOTE = (
    "Brazil is an extract of 38,000 rows (the paper has 190,000); its columns have no names, and the paper's "
    "attributes are recognised by their values. It has the "
    "income in two classes only: linear regression predicts weekly hours, and the class takes their place among the "
    "attributes. "
)
LINES_NOTE = (
    "FM has the printed constants, encoding and repairs and no intercept; 'FM without noise' is the same model, exact. "
    "Targets are scaled to [-1, 1]. "
    "privfit is the default estimator: for linear regression the functional mechanism, calibrated tightly; for "
    "logistic regression a perturbed objective, which beats NoPrivacy "
    "in places because numbers enter as lines between knots. Means over folds; the tails of FM are long. Quick runs "
    "have one "
    "cross-validation, two folds of it on the generated census, three draws of noise for fits from moments."
)
TIME_NOTE = (
    "Brazil is an extract of 38,000 rows (the paper has 190,000). Seconds that the process spends on a fit, on all "
    "cores: reading and encoding a table in memory, noise, solving; for DPME and FP publishing and the regression. "
    "The same fits as in the figures of errors. Fits from moments are drawn from kept sums, and the seconds of summing "
    "them are added."
)

TIGHT_BELOW_OTHERS = both(below(OURS, OTHERS, panels=LINEAR), below(OURS_FUNCTIONAL, OTHERS, panels=LOGISTIC))
TIGHT_ENDS = both(
    ends_within((OURS,), (NO_PRIVACY,), NEGLIGIBLE, panels=LINEAR),
    ends_within((OURS_FUNCTIONAL,), (NO_PRIVACY,), NEGLIGIBLE, panels=LOGISTIC),
)
FM_BELOW = Claim("FM has a smaller error than FP and DPME everywhere", beside(below(FM, OTHERS), TIGHT_BELOW_OTHERS))
LIKE_NO_PRIVACY = beside(
    within(FM, NO_PRIVACY, NEGLIGIBLE, panels=LINEAR), within(OURS, NO_PRIVACY, NEGLIGIBLE, panels=LINEAR)
)
ENDS_LIKE_NO_PRIVACY = beside(ends_within((FM,), (NO_PRIVACY,), NEGLIGIBLE, panels=tuple(PANELS)), TIGHT_ENDS)
SIMILAR_ORDERS = Claim(
    "Times of linear regression, which the paper does not show, are alike: FM before NoPrivacy before FP and DPME",
    both(below(FM, NO_PRIVACY, panels=LINEAR), below(NO_PRIVACY, OTHERS, panels=LINEAR)),
)
TIMES = (
    Claim(
        "FM takes a tenth of the time of NoPrivacy, or less",
        within(FM, NO_PRIVACY, 0.1, panels=LOGISTIC),
        printed="at least 10 times faster",
    ),
    Claim(
        "FP and DPME take longer than NoPrivacy (about twice as long)",
        below(NO_PRIVACY, OTHERS, panels=LOGISTIC),
        printed="about twice as long",
    ),
    Claim("FM is faster than FP and DPME", below(FM, OTHERS, panels=LOGISTIC)),
    SIMILAR_ORDERS,
)
FASTER_GROWTH = Claim(
    "The times of FP and DPME grow faster than those of FM and NoPrivacy",
    less_steep((FM, NO_PRIVACY), OTHERS, panels=LOGISTIC),
)

EXAMPLES = (
    Figure(
        "2",
        "Objective of linear regression on three rows, and its noisy version",
        "examples",
        {"epsilon 0.8": "ε = 0.8, the paper's default", "epsilon 100": "ε = 100"},
        (Method(example.NOISY), Method(example.OBJECTIVE, "reference"), Method(example.OURS, "ours")),
        Axis("ω"),
        Axis("objective"),
        "The rows are printed in the paper, its epsilon is not. With the printed sensitivity of 8 the noise is larger "
        "than the coefficients up to an epsilon of about 4. One draw "
        "each, without noise on the constant; privfit's line is what it releases before its repair.",
        measure="objective",
        claims=(
            Claim("The coefficient of ω² is 2.06", example.number(example.OBJECTIVE, "a", 2.06), printed="2.06"),
            Claim("The coefficient of ω is -2.34", example.number(example.OBJECTIVE, "b", -2.34), printed="-2.34"),
            Claim("The constant is 1.25", example.number(example.OBJECTIVE, "c", 1.25), printed="1.25"),
            Claim(
                "The minimum is at 117/206", example.number(example.OBJECTIVE, "minimum", 117 / 206), printed="117/206"
            ),
            Claim("The sensitivity is 8", example.number(example.NOISY, "sensitivity", 8), printed="8"),
            Claim(
                "The noisy minimum is near the true one where noise hardly changes the coefficients",
                example.close_when_preserved,
            ),
        ),
    ),
    Figure(
        "3",
        "Objective of logistic regression on three rows, and its quadratic approximation",
        "examples",
        {example.LOGISTIC: ""},
        (Method(example.APPROXIMATION), Method(example.OBJECTIVE, "reference"), Method(example.OURS, "ours")),
        Axis("ω"),
        Axis("objective"),
        "The rows are printed in the paper. No noise. privfit's line is the quadratic that is nearest on [-4, 4], "
        "which fits large scores better and small ones worse than Taylor's; "
        "pf.LogisticRegression does without a quadratic by default.",
        measure="objective",
        claims=(
            Claim("The approximation costs a row at most 0.015", example.small_constant, printed="0.015"),
            Claim(
                "Its minimum is not that of the true objective: a gap remains however many rows there are",
                example.gap_of_minima,
            ),
        ),
    ),
)

ERRORS = (
    Figure(
        "4",
        "Regression accuracy against dimensionality",
        "dimensionality",
        PANELS,
        METHODS,
        DIMENSION_AXIS,
        ERROR_AXIS,
        PEOPLE_NOTE + BRAZIL_NOTE + LINES_NOTE,
        default=OURS,
        claims=(
            Claim(
                "Linear: FM has a smaller error than FP and DPME at every dimensionality",
                beside(below(FM, OTHERS, panels=LINEAR), below(OURS, OTHERS, panels=LINEAR)),
            ),
            Claim("Linear: FM is almost identical to NoPrivacy", LIKE_NO_PRIVACY),
            Claim(
                "Linear: errors of FP and DPME over that of NoPrivacy are larger at the largest dimensionality than "
                "at the smallest",
                ratio_changes(OTHERS, NO_PRIVACY, grows=True, panels=LINEAR),
            ),
            Claim(
                "Logistic: Truncated is comparable to NoPrivacy",
                within(TRUNCATED, NO_PRIVACY, NEGLIGIBLE, panels=LOGISTIC),
            ),
            Claim(
                "Logistic: FM is slightly above Truncated",
                beside(
                    both(below(TRUNCATED, FM, panels=LOGISTIC), within(FM, TRUNCATED, 1.2, panels=LOGISTIC)),
                    within(OURS_FUNCTIONAL, TRUNCATED, 1.2, panels=LOGISTIC),
                ),
            ),
            Claim(
                "Logistic: FM has a smaller error than FP and DPME at every dimensionality",
                beside(below(FM, OTHERS, panels=LOGISTIC), below(OURS_FUNCTIONAL, OTHERS, panels=LOGISTIC)),
            ),
            Claim(
                "The advantage of FM over FP and DPME is larger at the largest dimensionality than at the smallest",
                ratio_changes(OTHERS, FM, grows=True, panels=tuple(PANELS), differences=True),
            ),
        ),
    ),
    Figure(
        "5",
        "Regression accuracy against cardinality",
        "cardinality",
        PANELS,
        METHODS,
        RATE_AXIS,
        ERROR_AXIS,
        MEN_NOTE
        + BRAZIL_NOTE
        + LINES_NOTE
        + " Quick runs have five of the ten rates. Where the number of cells along a number jumps, the errors of DPME "
        "and FP do too.",
        default=OURS,
        claims=(
            FM_BELOW,
            Claim("Linear: FM and NoPrivacy differ negligibly", LIKE_NO_PRIVACY),
            Claim(
                "Linear: the errors of FM and NoPrivacy are stable from a rate of 0.2 on",
                beside(
                    stays((FM, NO_PRIVACY), 1.1, panels=LINEAR, start=0.2),
                    stays((OURS,), 1.1, panels=LINEAR, start=0.2),
                ),
            ),
            Claim("Linear: FP and DPME get better with more rows", falls(OTHERS, panels=LINEAR)),
            Claim(
                "Linear: with all rows FP and DPME are still much worse than FM and NoPrivacy (a third or more)",
                ends_within((FM, NO_PRIVACY), OTHERS, 3 / 4, panels=LINEAR),
            ),
            Claim("Logistic: FM is above NoPrivacy and Truncated", below((NO_PRIVACY, TRUNCATED), FM, panels=LOGISTIC)),
            Claim(
                "Logistic: that gap shrinks with more rows",
                ratio_changes((FM,), NO_PRIVACY, grows=False, panels=LOGISTIC, differences=True),
            ),
            Claim("Logistic: the errors of FP and DPME fall with more rows", falls(OTHERS, panels=LOGISTIC)),
            Claim("With all rows FM is comparable to NoPrivacy", ENDS_LIKE_NO_PRIVACY),
        ),
    ),
    Figure(
        "6",
        "Regression accuracy against the privacy budget",
        "budget",
        PANELS,
        METHODS,
        EPSILON_AXIS,
        ERROR_AXIS,
        MEN_NOTE + BRAZIL_NOTE + LINES_NOTE,
        default=OURS,
        claims=(
            Claim(
                "NoPrivacy and Truncated are the same at every epsilon",
                stays((NO_PRIVACY, TRUNCATED), 1 + 1e-9, panels=tuple(PANELS)),
            ),
            Claim("FM, FP and DPME have larger errors at smaller epsilon", falls((FM, *OTHERS), panels=tuple(PANELS))),
            FM_BELOW,
            Claim(
                "FM changes less with epsilon than FP and DPME",
                beside(
                    less_steep((FM,), OTHERS, panels=tuple(PANELS)), less_steep((OURS,), OTHERS, panels=tuple(PANELS))
                ),
            ),
            Claim(
                "FP and DPME are farthest from NoPrivacy at small epsilon",
                ratio_changes(OTHERS, NO_PRIVACY, grows=False, panels=tuple(PANELS)),
            ),
            Claim("At the largest epsilon FM is comparable to NoPrivacy", ENDS_LIKE_NO_PRIVACY),
        ),
    ),
)


def _timed(number: str, title: str, experiment: str, axis: Axis, note: str, claims: tuple[Claim, ...]) -> Figure:
    return Figure(
        number,
        title,
        experiment,
        TIMED,
        TIMED_METHODS,
        axis,
        TIME_AXIS,
        note + TIME_NOTE,
        measure=SECONDS,
        claims=(*TIMES, *claims),
    )


EVERY = tuple(
    method.name for method in METHODS if method.kind != "ours" and method.name not in (NOISELESS_FM, CONSTANT)
)
PAPER = Paper(
    "functional-mechanism",
    "Functional Mechanism: Regression Analysis under Differential Privacy",
    "J. Zhang, Z. Zhang, X. Xiao, Y. Yang, M. Winslett. PVLDB 5(11), 2012.",
    experiments=(example.examples(), *(sweep.experiment() for sweep in SWEEPS)),
    figures=(
        *EXAMPLES,
        *ERRORS,
        _timed(
            "7",
            "Computation time of logistic regression against dimensionality",
            "dimensionality",
            DIMENSION_AXIS,
            PEOPLE_NOTE,
            (Claim("All times grow with the dimensionality", falls(EVERY, panels=LOGISTIC, rises=True)), FASTER_GROWTH),
        ),
        _timed(
            "8",
            "Computation time of logistic regression against cardinality",
            "cardinality",
            RATE_AXIS,
            MEN_NOTE,
            (Claim("All times grow with the number of rows", falls(EVERY, panels=LOGISTIC, rises=True)), FASTER_GROWTH),
        ),
        _timed(
            "9",
            "Computation time of logistic regression against the privacy budget",
            "budget",
            EPSILON_AXIS,
            MEN_NOTE,
            (Claim("Epsilon hardly changes the times (by less than half)", stays(EVERY, 1.5, panels=LOGISTIC)),),
        ),
    ),
    tables={"printed": example.no_table, "men": men, "people": people, "brazil": brazil},
)
