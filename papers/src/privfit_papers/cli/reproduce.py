"""`privfit reproduce`: the figures and tables of the five papers, each by one command."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from privfit.cli.console import hint, print_json, stderr, stdout
from privfit.cli.errors import CommandError, in_one_sentence
from privfit_papers.bench import harness
from privfit_papers.bench.claims import judged
from privfit_papers.bench.grid import Figure, Paper
from privfit_papers.bench.harness import Failure, Step, Work
from privfit_papers.bench.papers import MODULES, paper_named
from privfit_papers.bench.results import Key, Log, Results, Value
from privfit_papers.bench.sources import Source
from privfit_papers.report.gallery import MARKS, Shown, tally, write_gallery
from privfit_papers.report.papers import draw

app = typer.Typer(add_completion=False)

ALL = "all"
RESULTS = "results.csv"
SECONDS_BETWEEN_LINES = 30.0
INTERRUPTED = 130


@app.command(no_args_is_help=True)
@in_one_sentence
def reproduce(
    paper: Annotated[
        str | None, typer.Argument(help=f"One of {', '.join(MODULES)}, or all.", show_default=False)
    ] = None,
    figure: Annotated[
        list[str] | None, typer.Option("--figure", "-f", help="A figure of the paper. Repeat for more. Default: all.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show what can be reproduced, a line each, and stop.")] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick", help="The papers' own repetitions and grids (hours), or a few of each (minutes)."
        ),
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with real data; PRIVFIT_DATA names it too.")
    ] = None,
    download: Annotated[
        bool,
        typer.Option(
            "--download/--offline", help="Get files that the folder lacks from UCI, or make do with generated tables."
        ),
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for results and figures. Default: results/quick or results/full.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget earlier results in that folder. Otherwise a stopped run goes on.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes. Default: one a core.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims and their outcomes as JSON.")] = False,
) -> None:
    """Reproduce figures and tables of five papers, and check what the papers claim.

    Every result is kept in results.csv as soon as it is measured: a run that is
    stopped, even killed, goes on where it was. Figures (PNG and SVG) and a gallery
    with the outcome of every claim are drawn from that file. Noise is seeded: the
    same command gives the same numbers, times aside; nothing here is private.
    """
    if listed:
        _show_list(MODULES if paper in (None, ALL) else [str(paper)], as_json)
        return
    if paper is None:
        raise CommandError(
            f"Which paper? Name one of {', '.join(MODULES)}, or all. `privfit reproduce --list` shows their figures."
        )
    if figure and paper == ALL:
        raise CommandError("--figure needs one paper, and all was given. Name the paper that has the figure.")
    if folder is not None and not folder.is_dir():
        raise CommandError(
            f"--data names {folder}, which is no folder. Name one that has the files, or leave it out for generated "
            "tables."
        )
    chosen = _chosen(paper, figure)
    place = out or Path("results") / ("full" if full else "quick")
    if place.exists() and not place.is_dir():
        raise CommandError(f"--out names {place}, which is a file; a folder is needed.")
    log = Log(place / RESULTS)
    source = Source(folder=folder, download=download)
    works = {one.name: harness.planned(one, figures, source, quick=not full) for one, figures in chosen}
    every = [work for own in works.values() for work in own]
    for notice in _notices(every, source, generated=True):
        hint(notice)
    try:
        with log.alone(), _progress() as on_step:
            if fresh:
                log.path.unlink(missing_ok=True)
            failures = harness.run(every, source, log, workers=jobs, on_step=on_step)
    except KeyboardInterrupt:
        hint("Stopped. What was finished is kept, and the same command goes on from there.")
        raise typer.Exit(INTERRUPTED) from None
    except ValueError as refused:
        raise CommandError(str(refused)) from None
    done = log.finished()
    shown = [_shown(one, each, works[one.name], done, source, place) for one, figures in chosen for each in figures]
    command = " ".join(
        [
            "privfit reproduce",
            paper,
            *(f"--figure {number}" for number in figure or ()),
            "--full" if full else "--quick",
        ]
    )
    markdown, page = write_gallery(shown, _introduction(command, full), place, "gallery" if paper == ALL else paper)
    if as_json:
        print_json(_as_json(shown, failures, log))
    else:
        _show_claims(shown)
        stdout().print(
            f"Figures and gallery: {page} (and {markdown.name}). Results: {log.path}.", markup=False, soft_wrap=True
        )
    _raise_failures(failures)


def _chosen(paper: str, numbers: Sequence[str] | None) -> list[tuple[Paper, list[Figure]]]:
    try:
        papers = [paper_named(name) for name in (MODULES if paper == ALL else [paper])]
        return [
            (one, [each for number in numbers for each in one.figures_of(number)] if numbers else list(one.figures))
            for one in papers
        ]
    except ValueError as unknown:
        raise CommandError(str(unknown)) from None


def _show_list(names: Iterable[str], as_json: bool) -> None:
    papers = [_chosen(name, None)[0][0] for name in names]
    if as_json:
        print_json(
            {
                "figures": [
                    {"paper": one.name, "figure": each.number, "title": each.title}
                    for one in papers
                    for each in one.figures
                ]
            }
        )
        return
    width = max(map(len, MODULES))
    for one in papers:
        for each in one.figures:
            stdout().print(f"{one.name:<{width}}  figure {each.number:<4}  {each.title}", markup=False, soft_wrap=True)


def _notices(works: Sequence[Work], source: Source, *, generated: bool = False) -> list[str]:
    """What there is to say about the tables of these cells, each once."""
    tables = dict.fromkeys((work.paper, work.cell.table) for work in works)
    found = [harness.loaded(paper, table, source) for paper, table in tables]
    return list(
        dict.fromkeys(one.notice for one in found if one.notice and (one.origin == "generated" or not generated))
    )


def _shown(
    paper: Paper,
    figure: Figure,
    works: Sequence[Work],
    done: Mapping[Key, Sequence[Value]],
    source: Source,
    place: Path,
) -> Shown:
    own = [work for work in works if work.cell.experiment == figure.experiment]
    results = harness.figure_results(figure, own, done)
    generated, told = _notices(own, source, generated=True), _notices(own, source)
    others = [notice for notice in told if notice not in generated]
    note = " ".join(" ".join([*generated, figure.caption, *others, _counted(figure, results)]).split())
    stem = place / "figures" / f"{paper.name}-{figure.number}"
    made_up = any(notice.startswith(("Generated in place of", "No data folder")) for notice in generated)
    title = f"{paper.title} (on generated data, for want of the files)" if made_up else paper.title
    picture = draw(figure, results, title, note, stem)[0]
    return Shown(paper, figure, picture, note, judged(figure, results))


def _counted(figure: Figure, results: Results) -> str:
    """How many values are behind a point of the figure."""
    counts = [
        len(results.values(panel, method.name, x))
        for panel in figure.panels
        for method in figure.methods
        for x in results.xs(panel, method.name)
    ]
    if not counts:
        return "Nothing was measured yet."
    fewest, most = min(counts), max(counts)
    return (
        f"Each point stands for {fewest if fewest == most else f'{fewest} to {most}'} measured "
        f"value{'' if most == 1 else 's'}."
    )


def _introduction(command: str, full: bool) -> str:
    size = "the papers' own repetitions" if full else "a few repetitions, too few for close calls"
    return (
        f"Figures and tables of papers, measured again with {size}; `{command}` makes this page. Lines in blue and "
        "green are privfit's own, grey dashes are not private, the others are the papers' methods. "
        "Bands are the 10% to 90% quantiles of what was measured for a point (folds, repetitions, draws of noise); a "
        "mean can lie outside where a few draws are far off. A claim that one line is below another is compared point "
        "by point, in means: held if at all of them, held in part if at more than half. A claim that a line falls or "
        "rises "
        "compares its ends. privfit's default is the lowest private line if it is below, or within 0.1% of, every "
        "other private one."
    )


def _show_claims(shown: Sequence[Shown]) -> None:
    console = stdout()
    for one in shown:
        console.print(f"\n{one.paper.name}, {one.heading}", style="bold", markup=False, soft_wrap=True)
        for text, verdict in one.verdicts:
            line = f"{MARKS[verdict.outcome]} {verdict.outcome}: {text} ({verdict.number})"
            console.print(
                textwrap.fill(line, max(console.width, 60), initial_indent="  ", subsequent_indent="    "),
                markup=False,
                soft_wrap=True,
            )
    counts = ", ".join(f"{count} {outcome}" for outcome, count in tally(shown).items())
    console.print(f"\nClaims: {counts}.", markup=False)


def _as_json(shown: Sequence[Shown], failures: Sequence[Failure], log: Log) -> dict[str, Any]:
    claims = [
        {
            "paper": one.paper.name,
            "figure": one.figure.number,
            "claim": text,
            "outcome": verdict.outcome,
            "printed": verdict.printed,
            "number": verdict.number,
        }
        for one in shown
        for text, verdict in one.verdicts
    ]
    pictures = [
        {"paper": one.paper.name, "figure": one.figure.number, "picture": str(one.picture), "caption": one.note}
        for one in shown
    ]
    return {
        "results": str(log.path),
        "claims": claims,
        "figures": pictures,
        "failed": [_name(failure.work) for failure in failures],
    }


def _raise_failures(failures: Sequence[Failure]) -> None:
    for failure in failures:
        hint(f"{_name(failure.work)} failed: {failure.reason}")
    if failures:
        raise CommandError(
            f"{len(failures)} cells could not be measured. The same command tries them again; all others are kept."
        )


def _name(work: Work) -> str:
    return "/".join((work.paper, *map(str, work.cell.key)))


@contextmanager
def _progress() -> Iterator[Callable[[Step], None]]:
    """A bar with the time left on a terminal; a line every half minute elsewhere."""
    console = stderr()
    started, first, told = time.monotonic(), [-1.0], [time.monotonic()]

    def left(step: Step) -> str:
        if first[0] < 0:
            first[0] = step.share
        gained = step.share - first[0]
        if gained <= 0:
            return "estimating the time left"
        seconds = (time.monotonic() - started) * (1 - step.share) / gained
        return f"about {_duration(seconds)} left"

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("cells", total=None, left="")

        def on_step(step: Step) -> None:
            text = left(step)
            bar.update(task, total=step.cells, completed=step.finished, left=text)
            last = step.finished == step.cells
            if not console.is_terminal and (last or time.monotonic() - told[0] > SECONDS_BETWEEN_LINES):
                told[0] = time.monotonic()
                hint(f"{step.finished} of {step.cells} cells" + ("" if last else f", {text}"))

        yield on_step


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
