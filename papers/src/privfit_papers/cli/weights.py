"""`privfit bench weights`: importance weights on the experiment of Ji and Elkan (2013)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from privfit.cli.console import hint, print_json, stderr, stdout
from privfit.cli.errors import CommandError
from privfit_papers.bench import data
from privfit_papers.bench.weights import (
    ALPHA,
    EPSILON,
    METHODS,
    RUNS,
    SVM_COST,
    Outcome,
    adult_split,
    direct_deviation,
    generated_split,
    weighting_outcomes,
)

QUICK_RUNS = 3


def weights(
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with real data; PRIVFIT_DATA names it too.")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="tilting, paper or objective. Repeat for more. Default: all."),
    ] = None,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The privacy budget.")] = EPSILON,
    alpha: Annotated[float, typer.Option(help="The paper's lambda, for paper and objective.")] = ALPHA,
    runs: Annotated[int, typer.Option(min=1, help="Bootstraps of the private rows.")] = RUNS,
    svm_runs: Annotated[
        int | None, typer.Option(min=0, help="How many of them also train an SVM. Default: all.")
    ] = None,
    cost: Annotated[float, typer.Option("--svm-cost", help="LIBLINEAR's C.")] = SVM_COST,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Rows made up from the schema in place of the public ones.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small generated table and three runs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Estimate a private share from weighted public rows, by method.

    On Adult 90% of the men and 10% of the women are private and sex is left out; the
    share is that of large incomes. An SVM trained on the weighted rows is compared
    with one trained on the private rows. Noise is seeded, so that the same command
    gives the same numbers.
    """
    unknown = sorted(set(method or ()) - set(METHODS))
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} is not one of {', '.join(METHODS)}.", param_hint="--method")
    try:
        split = generated_split() if quick else adult_split(data.data_folder(folder))
    except data.NoData as missing:
        raise CommandError(str(missing)) from None
    runs = QUICK_RUNS if quick else runs
    hint(f"{split.private.height:,} private and {split.public.height:,} public rows ...")
    with stderr().status(f"{runs} runs"):
        outcomes = weighting_outcomes(
            split,
            methods=method or tuple(METHODS),
            epsilon=epsilon,
            alpha=alpha,
            runs=runs,
            svm_runs=svm_runs,
            uniform=uniform,
            cost=cost,
        )
    if as_json:
        print_json(
            {
                "weights": [outcome.to_dict() for outcome in outcomes],
                "direct_deviation": direct_deviation(split, epsilon),
            }
        )
        return
    stdout().print(outcome_table(outcomes))
    first = outcomes[0]
    told = f"The private share is {first.truth:.4f}, that of unweighted public rows {first.unweighted:.4f}."
    stdout().print(
        f"{told} Asked for directly, it would have a deviation of {direct_deviation(split, epsilon):.4f}.", markup=False
    )
    stdout().print(
        f"The private SVM has norm {first.svm_norm:.2f}; unweighted public rows are "
        f"{first.unweighted_svm_distance:.2f} from it.",
        markup=False,
    )


def outcome_table(outcomes: list[Outcome]) -> Table:
    """One line a method, for the terminal."""
    first = outcomes[0]
    table = Table(
        title=f"Share of large incomes, epsilon {first.epsilon:g}, {first.runs} bootstraps",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in ("method", "median", "off by", "deviation", "effective rows", "SVM distance"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for one in outcomes:
        distance = "-" if one.svm_distance is None else f"{one.svm_distance:.2f}"
        off = f"{one.median - one.truth:+.4f}"
        table.add_row(
            one.method, f"{one.median:.4f}", off, f"{one.deviation:.4f}", f"{one.effective_rows:.0f}", distance
        )
    return table
