"""`privfit predict`: what a saved model says about the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from privfit.cli.console import hint, stderr
from privfit.cli.errors import CommandError
from privfit.cli.output import check_output
from privfit.models import load_model

CSV = (".csv",)
PARQUET = (".parquet", ".pq")


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `privfit fit -o MODEL` wrote.")],
    table: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The rows to predict for: a Parquet or CSV file with the same columns."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where to write the predictions: a .csv or .parquet file. Default: stdout, as CSV."
        ),
    ] = None,
) -> None:
    """Predict for every row of a file, in the file's order.

    Writes a column `prediction` and, for a logistic model, one column
    `probability_CLASS` per class. This costs no budget: the model is already
    private. The predictions themselves say something about the rows in FILE.

    \b
    Examples:
      privfit predict model.json people.csv
      privfit predict model.json people.parquet -o predictions.parquet
    """
    if output is not None:
        check_ending(output)
        check_output(output, model, table)
    fitted = load_model(model)
    with stderr().status(f"Predicting for {table.name}"):
        frame = predictions(fitted, table)
    if output is None:
        typer.echo(frame.write_csv(), nl=False)
        return
    if output.suffix.lower() in PARQUET:
        frame.write_parquet(output)
    else:
        frame.write_csv(output)
    hint(f"{frame.height:,} predictions are in {output}.")


def predictions(model: Any, table: Path) -> pl.DataFrame:
    """The model's predictions, and for a classifier the probability of every class."""
    columns = {"prediction": model.predict(table)}
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(table)
        columns |= {f"probability_{label}": chances[:, place] for place, label in enumerate(model.classes_)}
    return pl.DataFrame(columns)


def check_ending(output: Path) -> None:
    """Refuse a file whose ending names no format."""
    if output.suffix.lower() not in (*CSV, *PARQUET):
        raise CommandError(
            f"-o {output} ends in neither .csv nor .parquet, so its format is unknown. Give it one of these endings: "
            f"{', '.join(CSV + PARQUET)}."
        )
