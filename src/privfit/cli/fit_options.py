"""The options of `privfit fit`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privfit.cli.options import PRIVACY

MODEL = "Model"


class Model(StrEnum):
    """The models that `privfit fit` knows."""

    linear = "linear"
    ridge = "ridge"
    lasso = "lasso"
    elastic_net = "elastic-net"
    logistic = "logistic"
    svm = "svm"
    additive_regressor = "additive-regressor"
    additive_classifier = "additive-classifier"
    quantile = "quantile"
    naive_bayes = "naive-bayes"
    poisson = "poisson"
    gamma = "gamma"
    fractional = "fractional"
    cox = "cox"
    kmeans = "kmeans"
    pca = "pca"


def planned_name(model: str) -> str:
    """What a plan calls a model of this name."""
    return "svc" if model == Model.svm else model


class NumericStyle(StrEnum):
    """How numeric columns without bins of their own enter the model."""

    auto = "auto"
    slope = "slope"
    bins = "bins"
    splines = "splines"


class Mechanism(StrEnum):
    """The mechanisms that `privfit fit` knows by name."""

    auto = "auto"
    objective = "objective"
    output = "output"
    functional = "functional"
    genetic = "genetic"
    hybrid = "hybrid"
    cells = "cells"
    grid = "grid"
    lloyd = "lloyd"
    aggregate = "sample-and-aggregate"
    adassp = "adassp"
    boosted_adassp = "boosted-adassp"


class SvmLoss(StrEnum):
    huber = "huber"
    hinge = "hinge"


class Kernel(StrEnum):
    linear = "linear"
    rbf = "rbf"


SchemaFile = Annotated[
    Path,
    typer.Option(
        "--schema",
        "-s",
        metavar="TOML",
        help="The public facts; `privfit schema FILE` drafts them.",
        rich_help_panel=MODEL,
    ),
]
ModelOption = Annotated[
    Model,
    typer.Option(
        "--model",
        "-m",
        metavar="KIND",
        help="For a number: linear, ridge, lasso, elastic-net, additive-regressor, quantile; poisson (counts), gamma "
        "(amounts), fractional (shares). For a class: logistic, svm, additive-classifier, naive-bayes. For a time "
        "until an event: cox. Without a target: kmeans (clusters), pca (components).",
        rich_help_panel=MODEL,
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="JSON", help="Where to write the model.", rich_help_panel=MODEL)
]
EpsilonOption = Annotated[
    float,
    typer.Option(
        "--epsilon",
        "-e",
        help="What this fit spends. Smaller protects more and adds more noise.",
        rich_help_panel=PRIVACY,
    ),
]
DeltaOption = Annotated[
    float,
    typer.Option(
        help="The probability that the guarantee may fail. Above 0, Gaussian noise is used where it is less.",
        rich_help_panel=PRIVACY,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Repeatable noise, for tests: the model is NOT private.", show_default=False, rich_help_panel=PRIVACY
    ),
]
NoInterceptOption = Annotated[
    bool, typer.Option("--no-intercept", help="Fit without a constant term.", rich_help_panel=MODEL)
]
NumericOption = Annotated[
    NumericStyle,
    typer.Option(
        metavar="KIND",
        help="Numbers as lines (slope), steps (bins), linear splines (splines), or auto.",
        rich_help_panel=MODEL,
    ),
]
MechanismOption = Annotated[
    Mechanism,
    typer.Option(
        metavar="NAME",
        help="auto; objective, output or genetic for classes; functional for numbers and logistic; objective, adassp "
        "or boosted-adassp for linear; "
        "hybrid, cells, grid, lloyd or genetic for kmeans; sample-and-aggregate for classes and kmeans.",
        rich_help_panel=MODEL,
    ),
]
AlphaOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="The penalty of ridge, lasso and elastic-net: a number, auto (from public facts) or select (by the "
        "data, privately).",
        show_default="auto",
        rich_help_panel=MODEL,
    ),
]
QuantileOption = Annotated[
    float | None,
    typer.Option(
        "--quantile",
        "-q",
        help="The quantile that a quantile regression predicts; 0.5, the median, if not given.",
        rich_help_panel=MODEL,
    ),
]
TimeOption = Annotated[
    str | None,
    typer.Option(
        "--time", metavar="NAME", help="The number in the schema that is the time of cox.", rich_help_panel=MODEL
    ),
]
EventOption = Annotated[
    str | None,
    typer.Option(
        "--event",
        metavar="NAME",
        help="The category, or column of 0 and 1, that says whether it is the time of an event.",
        rich_help_panel=MODEL,
    ),
]
IntervalsOption = Annotated[
    bool,
    typer.Option(
        "--intervals",
        help="Buy what intervals of coefficients and predictions need, with a part of epsilon.",
        rich_help_panel=MODEL,
    ),
]
L1RatioOption = Annotated[
    float | None,
    typer.Option(
        help="The share of elastic-net's penalty on absolute values.", show_default="0.5", rich_help_panel=MODEL
    ),
]
ClustersOption = Annotated[
    int | None, typer.Option(min=1, help="How many clusters kmeans has.", show_default="8", rich_help_panel=MODEL)
]
ComponentsOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="How many principal components pca keeps.", show_default="all columns", rich_help_panel=MODEL
    ),
]
InteractionsOption = Annotated[
    int | None,
    typer.Option(
        help="For logistic and additive models: how many tables for pairs of columns, or numbers in fine steps, are "
        "chosen privately; 0 for a sum over columns.",
        show_default="by a public rule",
        rich_help_panel=MODEL,
    ),
]
LossOption = Annotated[
    SvmLoss | None,
    typer.Option(
        metavar="KIND", help="For svm: huber (rounded) or hinge.", show_default="huber", rich_help_panel=MODEL
    ),
]
KernelOption = Annotated[
    Kernel | None,
    typer.Option(
        metavar="KIND",
        help="For logistic and svm: linear, or rbf, which is non-linear in all columns together.",
        show_default="linear",
        rich_help_panel=MODEL,
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--n-jobs", help="How many threads sum rows; -1 for all cores.", show_default="all cores"),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory that the fit may take, such as 500MB or 8GB; rows that need more go to a temporary file in "
        "PRIVFIT_CACHE.",
        show_default="1GB",
    ),
]
WeightOption = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column that says how much each row counts.", show_default=False),
]
MaxWeightOption = Annotated[
    float | None,
    typer.Option(help="The public bound of weights; larger ones count as this one.", show_default=False),
]
ClassWeightOption = Annotated[
    str | None,
    typer.Option(
        metavar="WEIGHTS",
        help="For classes: public weights such as no=1,yes=5, or balanced, which buys noisy counts with 3% of epsilon.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
RowNormOption = Annotated[
    float | None,
    typer.Option(
        help="For logistic and svm: the length that no row of numbers exceeds; longer ones are shortened.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
