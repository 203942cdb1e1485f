"""The command line: one file per command, put together here.

A command is a function with typed options that prints its result on stdout, and progress, hints and errors on stderr. A
group of commands (`privfit ledger ...`) is a typer app of its own in a file of this folder, added below with
`app.add_typer(group, name=...)`. Other distributions add commands by entry points (extensions.py).
"""

from __future__ import annotations

from typing import Annotated

import typer

from privfit.cli.audit import audit
from privfit.cli.bounds import bounds
from privfit.cli.demo import demo
from privfit.cli.describe import describe
from privfit.cli.doctor import doctor
from privfit.cli.errors import in_one_sentence
from privfit.cli.evaluate import evaluate
from privfit.cli.explore import explore
from privfit.cli.extensions import Commands
from privfit.cli.fit import fit
from privfit.cli.itemsets import itemsets
from privfit.cli.kaplan_meier import kaplan_meier
from privfit.cli.ledger import group as ledger
from privfit.cli.plan import plan
from privfit.cli.predict import predict
from privfit.cli.publish import publish
from privfit.cli.report import report
from privfit.cli.schema import schema
from privfit.cli.search import search
from privfit.cli.select import select
from privfit.cli.single_figures import count, crosstab, histogram, mean, quantile
from privfit.version import VERSION

__all__ = ["app", "main"]

# A traceback with local variables would show rows, so typer's own is switched off.
app = typer.Typer(
    name="privfit",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    epilog="Exit codes: 0 done, 1 an error, 2 a command that lacks something or facts that do, 3 a budget that cannot "
    "pay. Results are on stdout, all else on stderr; --json makes both for scripts. NO_COLOR=1 takes colours away.",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"privfit {VERSION}")
        raise typer.Exit


@app.callback()
def privfit(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Fit models on sensitive tables so that the model can be shown to anybody.

    Noise that protects people is chosen from a schema of public facts, and every
    fit is paid for from a budget, the ledger, that cannot be overdrawn.

    New here? Start with [bold]privfit demo[/bold]. With a file of your own, in this order:

    \b
    1. Draft the public facts, fill in every "?", and check them.
         privfit schema people.csv --target income -o schema.toml
         privfit schema --check schema.toml people.csv
       Nobody knows the bounds of a column? Buy them:
         privfit bounds people.csv income=0:1e7 --epsilon 0.05 --ledger budget.db
    2. Set a budget, once per table of people.
         privfit ledger create budget.db --epsilon 1
    3. Fit. The model may be released; the table stays.
         privfit fit people.csv --schema schema.toml --model linear \\
             --epsilon 0.5 --ledger budget.db -o model.json
    4. Ask how good it is, use it, and see what is left of the budget.
         privfit evaluate model.json holdout.csv --epsilon 0.1 --ledger budget.db
         privfit predict model.json others.csv -o predictions.csv
         privfit ledger budget.db
    """


COMMANDS = (
    demo,
    schema,
    bounds,
    describe,
    count,
    mean,
    quantile,
    histogram,
    crosstab,
    itemsets,
    kaplan_meier,
    plan,
    explore,
    fit,
    search,
    select,
    evaluate,
    predict,
    report,
    publish,
    audit,
    doctor,
)
for command in COMMANDS:
    name = command.__name__.replace("_", "-")
    app.command(name, no_args_is_help=command not in (demo, explore, audit, doctor))(in_one_sentence(command))

app.add_typer(ledger, name="ledger")


def main() -> None:
    """Run the command line."""
    app(prog_name="privfit")
