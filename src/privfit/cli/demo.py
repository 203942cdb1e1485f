"""`privfit demo`: the whole path on generated people, from a table to released models and a spent budget."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from numpy.typing import NDArray
from rich.table import Table
from sklearn import linear_model
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privfit.cli.console import ledger_facts, ledger_sentence, print_json, print_report, stderr, stdout
from privfit.cli.schema import schema_table
from privfit.datasets.census import (
    DEFAULT_ROWS,
    HIGH_INCOME,
    HIGH_INCOME_FROM,
    INCOME,
    census_schema,
    generated_census,
    with_high_income,
)
from privfit.models import LinearRegression, LogisticRegression
from privfit.privacy import Budget, BudgetExceeded, Ledger, exact
from privfit.schema import Category

DEFAULT_EPSILONS = (0.1, 0.3, 1.0)
"""A strong, a moderate and a usual budget, so that the demo shows what epsilon buys. Chosen, not measured."""
FEWEST_ROWS = 100
"""Fewer rows than this show nothing but noise at these epsilons. Chosen, not measured."""


@dataclass(frozen=True)
class Score:
    """How well one way of predicting does on people it has not seen. Without an epsilon it is not private."""

    name: str
    epsilon: float | None
    typical_error: float
    explained: float
    correct: float


@dataclass(frozen=True)
class Outcome:
    """All that the demo shows."""

    scores: list[Score]
    model: LinearRegression
    ledger: Ledger
    refusal: str


def demo(
    rows: Annotated[int, typer.Option(min=FEWEST_ROWS, help="How many people to generate.")] = DEFAULT_ROWS,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            "--epsilon", "-e", help="The privacy of a fit; repeat it to compare several.", show_default="0.1, 0.3, 1"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Fit private models on generated people and see what privacy costs.

    Needs no file and writes none. The people are made up and always the same;
    the noise is real, so the numbers differ a little from run to run.

    \b
    Examples:
      privfit demo
      privfit demo --rows 200000 --epsilon 0.05 --epsilon 0.5
    """
    epsilons = tuple(sorted(Budget(asked).epsilon for asked in epsilon or DEFAULT_EPSILONS))
    with stderr().status("Generating people and fitting models"):
        people = generated_census(rows)
        outcome = run_demo(people, epsilons)
    if as_json:
        _print_json(rows, outcome)
    else:
        _tell(people, epsilons, outcome)


def run_demo(people: pl.DataFrame, epsilons: tuple[float, ...]) -> Outcome:
    """Fit both models at every epsilon on four people of five, score them on the fifth, and then try to overdraw the
    budget.
    """
    whole = 2 * sum(exact(epsilon) for epsilon in epsilons) + exact(epsilons[-1]) / 2
    ledger = Ledger(epsilon=float(whole))
    split = _Split.of(people)
    private = []
    for epsilon in epsilons:
        linear = LinearRegression(epsilon, schema=census_schema("income"), ledger=ledger).fit(split.fit)
        logistic = LogisticRegression(epsilon, schema=census_schema("high_income"), ledger=ledger).fit(
            with_high_income(split.fit)
        )
        private.append(
            split.score("privfit", epsilon, linear.predict(split.held_out), logistic.predict(split.held_out))
        )
    try:
        LinearRegression(epsilons[-1], schema=census_schema("income"), ledger=ledger).fit(split.fit)
        refusal = ""
    except BudgetExceeded as error:
        refusal = str(error)
    return Outcome([split.guess(), *private, split.not_private()], linear, ledger, refusal)


@dataclass(frozen=True)
class _Split:
    """The people to fit on, the people to score on, and both one-hot encoded for scikit-learn."""

    fit: pl.DataFrame
    held_out: pl.DataFrame
    fit_columns: NDArray[np.float64]
    held_out_columns: NDArray[np.float64]

    @classmethod
    def of(cls, people: pl.DataFrame) -> _Split:
        size = people.height * 4 // 5
        categories = [column.name for column in census_schema().features if isinstance(column, Category)]
        columns = people.drop(INCOME).to_dummies(categories).to_numpy().astype(np.float64)
        return cls(people.head(size), people.tail(people.height - size), columns[:size], columns[size:])

    def score(self, name: str, epsilon: float | None, incomes: Any, classes: Any) -> Score:
        income = self.held_out[INCOME].to_numpy()
        high = with_high_income(self.held_out)[HIGH_INCOME].to_numpy()
        error, explained = float(root_mean_squared_error(income, incomes)), float(r2_score(income, incomes))
        return Score(name, epsilon, error, explained, float(np.mean(high == classes)))

    def guess(self) -> Score:
        """The same answer for everybody: the mean income and the more common class."""
        size = self.held_out.height
        common = with_high_income(self.fit)[HIGH_INCOME].mode().sort()[0]
        return self.score(
            "the same answer for all", None, np.full(size, self.fit[INCOME].mean()), np.full(size, common)
        )

    def not_private(self) -> Score:
        """scikit-learn's ordinary models on the same columns."""
        linear = linear_model.LinearRegression().fit(self.fit_columns, self.fit[INCOME].to_numpy())
        logistic = make_pipeline(StandardScaler(), linear_model.LogisticRegression())
        logistic.fit(self.fit_columns, with_high_income(self.fit)[HIGH_INCOME].to_numpy())
        return self.score(
            "scikit-learn, no privacy",
            None,
            linear.predict(self.held_out_columns),
            logistic.predict(self.held_out_columns),
        )


def _print_json(rows: int, outcome: Outcome) -> None:
    print_json(
        {
            "rows": rows,
            "high_income_from": HIGH_INCOME_FROM,
            "scores": [asdict(score) for score in outcome.scores],
            "report": outcome.model.report_.to_dict(),
            "ledger": ledger_facts(outcome.ledger),
            "refusal": outcome.refusal,
        }
    )


def _tell(people: pl.DataFrame, epsilons: tuple[float, ...], outcome: Outcome) -> None:
    console = stdout()
    size = people.height * 4 // 5
    console.rule("1. A table of people", align="left")
    console.print(
        f"{people.height:,} made-up people, one a row. Models are fitted on {size:,} of them and tried on the other "
        f"{people.height - size:,}.\n"
        "The linear model predicts a person's yearly income; the logistic model whether it is above "
        f"${HIGH_INCOME_FROM:,}.\n"
    )
    console.rule("2. The schema: what may be known without looking at anybody", align="left")
    console.print(schema_table(census_schema()))
    console.print(
        "Noise is chosen from these facts alone. They come from knowledge about the world; values outside are "
        "clipped.\n"
    )
    console.rule("3. The models", align="left")
    console.print(_score_table(outcome.scores))
    console.print(
        "Epsilon limits how much any one person's row can change what is released: smaller protects more and adds more "
        "noise. "
        "The typical error (the root of the mean squared error) and explained (the share of the variance of income) "
        "judge the linear "
        "model; correct is the share of people whom the logistic model puts on the right side of the threshold. More "
        "rows make the "
        "noise matter less.\n"
    )
    console.rule(f"4. What was promised: the linear model at epsilon {epsilons[-1]:g}", align="left")
    print_report(outcome.model.report_)
    console.print()
    console.rule("5. What it cost", align="left")
    console.print(ledger_sentence(outcome.ledger))
    if outcome.refusal:
        console.print(f"One more fit at epsilon {epsilons[-1]:g} was refused:", markup=False)
        console.print(f"  {outcome.refusal}\n", style="red", markup=False)
    console.rule("Next", align="left")
    console.print(_next(people.height, epsilons), markup=False, soft_wrap=True)


def _score_table(scores: list[Score]) -> Table:
    lines = Table()
    lines.add_column("model")
    for name in ("epsilon", "typical error", "explained", "correct"):
        lines.add_column(name, justify="right")
    for score in scores:
        epsilon = "" if score.epsilon is None else f"{score.epsilon:g}"
        error = f"${score.typical_error:,.0f}"
        lines.add_row(score.name, epsilon, error, f"{round(score.explained, 3) + 0.0:.1%}", f"{score.correct:.1%}")
    return lines


def _next(rows: int, epsilons: tuple[float, ...]) -> str:
    return (
        f"privfit demo --rows {10 * rows} --epsilon {epsilons[0]:g}   ten times the people\n"
        "privfit schema people.csv -o schema.toml   start with a file of your own\n"
        "privfit --help                             all commands, in their order"
    )
