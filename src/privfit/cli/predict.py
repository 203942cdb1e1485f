"""`privfit predict`: what a saved model says about the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from privfit.cli.console import counting_rows, hint, print_json
from privfit.cli.errors import CommandError
from privfit.cli.options import SOURCES, shown_source
from privfit.cli.output import check_output
from privfit.cli.prediction_files import check_ending, check_folder, write_file, write_folder, write_stdout
from privfit.models import load_model, prediction_batches
from privfit.tables import Table, open_table


class Format(StrEnum):
    """What files in a folder are written as."""

    parquet = "parquet"
    csv = "csv"


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `privfit fit -o MODEL` wrote.")],
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help=f"The rows to predict for, with the same columns: {SOURCES}.")
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the predictions: a .csv or .parquet file, or a folder (out/). Default: stdout, as "
            "CSV.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="A column to carry along, as an id; can be given several times."),
    ] = None,
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals", help="Add the ends of the 90% interval of the mean, or the probability, of such rows."
        ),
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="What files in a folder are written as.")] = Format.parquet,
    as_json: Annotated[bool, typer.Option("--json", help="With -o: print what was written as JSON.")] = False,
) -> None:
    """Predict for every row of a table, in the table's order.

    Writes a column `prediction`; for a logistic model also one column
    `probability_CLASS` per class, with --intervals `lower` and `upper`. Columns
    named by --keep come first. Rows are read and written in batches, so that
    memory stays small. This costs no budget: the model is already private. The
    predictions themselves say something about the rows.

    \b
    Examples:
      privfit predict model.json people.csv
      privfit predict model.json people.parquet -o predictions.parquet
      privfit predict model.json "data/*.parquet" --keep patient_id -o out/
    """
    if as_json and output is None:
        raise CommandError(
            "--json was given without -o, and predictions on stdout are CSV. Nothing was read. Say where to write "
            "them: -o predictions.csv."
        )
    folder = output is not None and (output.endswith("/") or Path(output).is_dir())
    if output is not None and folder:
        check_folder(Path(output))
        check_output(Path(output) / "predictions", model, table, inside=False)
    elif output is not None:
        check_ending(Path(output))
        check_output(Path(output), model, table)
    fitted = load_model(model)
    opened = open_table(table)
    with counting_rows(f"Predicting for {shown_source(table)}", opened.n_rows):
        frames = _frames(fitted, opened, keep or [], intervals)
        if output is None:
            write_stdout(frames)
            return
        target = Path(output)
        rows = write_folder(frames, target, f".{form.value}") if folder else write_file(frames, target)
    if as_json:
        print_json({"output": output, "rows": rows})
        return
    hint(f"{rows:,} predictions are in {output}.")


def _frames(model: Any, table: Table, keep: list[str], intervals: bool) -> Iterator[pl.DataFrame]:
    """The predictions in frames; of a table without rows, one without rows."""
    empty = True
    for batch in prediction_batches(model, table, keep, intervals=intervals):
        empty = False
        yield pl.DataFrame(batch)
    if empty:
        yield pl.DataFrame({name: [] for name in (*keep, "prediction")})
