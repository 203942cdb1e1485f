"""`privfit plan`: what a fit will give, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from privfit.cli.console import hint, print_json, stderr, stdout
from privfit.cli.errors import CommandError
from privfit.cli.fit_options import ComponentsOption, EventOption, TimeOption, planned_name
from privfit.cli.options import AsJson, RowsPerPersonOption
from privfit.cli.schema import complete_schema
from privfit.planning import plan as planned


def plan(
    schema: Annotated[
        Path, typer.Argument(metavar="TOML", help="The public facts; `privfit schema FILE` drafts them.")
    ],
    rows: Annotated[int, typer.Option(min=1, help="How many rows the private table has, or a public guess.")],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="KIND",
            help="linear, ridge, lasso, elastic-net, logistic, svm, kmeans, additive-regressor, "
            "additive-classifier, naive-bayes, poisson, gamma, fractional, quantile (of the median), pca or cox.",
        ),
    ] = "logistic",
    epsilon: Annotated[
        list[float] | None, typer.Option("--epsilon", "-e", help="Repeat for more. Default: 0.1 to 1.6.")
    ] = None,
    public: Annotated[
        str | None,
        typer.Option("--public", "-p", metavar="TABLE", help="A public sample of rows. Never the private table."),
    ] = None,
    mechanism: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Repeat for more. Default: all that the model knows.")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="How many tables are generated.")] = 3,
    rows_per_person: RowsPerPersonOption = 1,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the plan into this PNG, SVG or PDF file.")
    ] = None,
    time: TimeOption = None,
    event: EventOption = None,
    components: ComponentsOption = None,
    as_json: AsJson = False,
) -> None:
    """Forecast what a fit will give, without the private table and at no cost.

    Models are fitted to tables that are generated from the schema, or from a
    public sample.

    \b
    Examples:
      privfit plan people.toml --rows 50000 --model logistic
      privfit plan people.toml --rows 50000 --public sample.csv --json
    """
    named = _of_one_model(model, time, event, components)
    facts = complete_schema(schema)
    console = stderr()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("Simulating fits", total=None)
        found = planned(
            facts,
            rows,
            model=planned_name(model),
            epsilon=tuple(epsilon) if epsilon else (0.1, 0.2, 0.4, 0.8, 1.6),
            public=public,
            mechanisms=mechanism or None,
            repetitions=repetitions,
            rows_per_person=rows_per_person,
            progress=lambda done, steps: shown.update(task, completed=done, total=steps),
            **named,
        )
    if figure is not None:
        found.plot(figure)
        hint(f"The drawing is in {figure}.")
    if as_json:
        print_json(found.to_dict())
    else:
        stdout().print(str(found), markup=False, soft_wrap=True)


def _of_one_model(model: str, time: str | None, event: str | None, components: int | None) -> dict[str, Any]:
    """Options that one model has."""
    named: dict[str, Any] = {name: value for name, value in (("time", time), ("event", event)) if value is not None}
    if named and model != "cox":
        raise CommandError(f"--{next(iter(named))} was given with --model {model}; only cox has it. Leave it out.")
    if components is not None:
        if model != "pca":
            raise CommandError(f"--components was given with --model {model}; only pca has it. Leave it out.")
        named["n_components"] = components
    return named
