"""The board of peers as a page in Markdown, with a picture for each task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privfit_papers.bench.board.methods import METHODS, OURS, OURS_WITH_DELTA
from privfit_papers.bench.board.scores import LEVEL, MEASURES, TITLES
from privfit_papers.bench.board.standing import Line, ahead_of_us
from privfit_papers.report.gallery import wrapped

INK, GRID = "#2b2b2b", "#e4e4e4"
COLOURS = (
    "#0b6e99",
    "#448361",
    "#d9730d",
    "#6940a5",
    "#b3261e",
    "#8d6e63",
    "#00897b",
    "#9a6700",
    "#5c6bc0",
    "#c2185b",
    "#546e7a",
    "#2b2b2b",
)
WORST_SHOWN = {"numbers": -0.1, "classes": 1.0}
"""What is worse than this leaves the picture: R2 below, and wrong classes above so many times a constant's."""


def board_figure(lines: Sequence[Line], task: str, path: Path) -> None:
    """The main measure of each private method by epsilon, a panel for each table, with the spread over splits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    own = [line for line in lines if line.task == task and line.spreads]
    tables = list(dict.fromkeys(line.table for line in own))
    private = [line for line in own if line.method.promise != "none"]
    colours = dict(zip(dict.fromkeys(line.method.name for line in private), COLOURS * 3, strict=False))
    figure, axes = plt.subplots(1, len(tables), figsize=(4.4 * len(tables), 4.0), squeeze=False)
    for axis, table in zip(axes[0], tables, strict=True):
        _panel(axis, [line for line in own if line.table == table], colours)
    axes[0][0].set_ylabel(TITLES[next(iter(MEASURES[task]))])
    told = {label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(
        told.values(), told.keys(), loc="lower center", ncols=4, frameon=False, bbox_to_anchor=(0.5, -0.02), fontsize=8
    )
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    figure.savefig(path, dpi=130, bbox_inches="tight", facecolor="white")
    plt.close(figure)


def _panel(axis: Any, lines: Sequence[Line], colours: dict[str, str]) -> None:
    measure = next(iter(MEASURES[lines[0].task]))
    epsilons = sorted({line.epsilon for line in lines if line.epsilon})
    for name in dict.fromkeys(line.method.name for line in lines):
        spreads = [(line.epsilon, line.spreads[measure]) for line in lines if line.method.name == name]
        if name not in colours:
            axis.axhline(spreads[0][1].mean, color=INK, linewidth=1, linestyle=(0, (4, 3)), alpha=0.6)
            axis.text(epsilons[-1], spreads[0][1].mean, name, ha="right", va="bottom", fontsize=7, color=INK)
            continue
        x, y, around = zip(*((epsilon, one.mean, one.deviation) for epsilon, one in spreads), strict=True)
        style: dict[str, Any] = {"fmt": "o-" if name in (OURS, OURS_WITH_DELTA) else "s--", "color": colours[name]}
        axis.errorbar(x, y, yerr=around, label=name, linewidth=1.6, markersize=4, capsize=2, **style)
    axis.set_ylim(*_limits(lines, measure))
    axis.set_xscale("log", base=2)
    axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axis.set_xlabel("epsilon")
    axis.set_title(lines[0].table, fontsize=10, color=INK)
    axis.grid(True, color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)


def _limits(lines: Sequence[Line], measure: str) -> tuple[float, float]:
    means = [line.spreads[measure].mean for line in lines]
    if lines[0].task == "numbers":
        return max(min(means), WORST_SHOWN["numbers"]) - 0.02, max(means) * 1.06 + 0.01
    constant = [line.spreads[measure].mean for line in lines if line.method.name == "constant"]
    most = WORST_SHOWN["classes"] * constant[0] if constant else max(means)
    return min(means) * 0.95, min(max(means), most) * 1.05


# -- the page ---------------------------------------------------------------------------------------


def board_page(
    lines: Sequence[Line], command: str, notes: Sequence[str], folder: Path, pictures: str = "figures"
) -> Path:
    """Write board.md into a folder and its pictures below it."""
    (folder / pictures).mkdir(parents=True, exist_ok=True)
    text = ["# The board of peers", "", wrapped(_introduction(command)), ""]
    text += [wrapped(f"- {note}").replace("\n", "\n  ") for note in notes] + [
        "",
        "## Where somebody else is ahead",
        "",
        *_ahead(lines),
    ]
    for task in dict.fromkeys(line.task for line in lines):
        name = f"{pictures}/board-{task}.png"
        board_figure(lines, task, folder / name)
        main = TITLES[next(iter(MEASURES[task]))]
        text += ["", f"## {task.capitalize()}", "", f"![{main} by epsilon, private methods]({name})"]
        for table in dict.fromkeys(line.table for line in lines if line.task == task):
            for measure in MEASURES[task]:
                own = [line for line in lines if line.table == table]
                text += ["", f"### {table}: {TITLES[measure]}", "", *_table(own, measure)]
    text += ["", "## Who is on it", "", *_who(lines), ""]
    page = folder / "board.md"
    page.write_text("\n".join(text), encoding="utf-8")
    return page


def _introduction(command: str) -> str:
    return (
        f"`{command}` makes this page. Every method has the same random 80/20 splits, the same public bounds and "
        "levels, and the same epsilon; those that need a delta have 1e-6, and are compared with privfit with that "
        "delta, the others with privfit without one. Each peer has its defaults and an environment of its own. Cells "
        "are the mean ± the standard deviation over splits, then the worst split. ▲ is significantly ahead of privfit "
        "with the same promise, ▼ significantly behind, where the p-value of the mean of paired differences is below "
        f"{LEVEL:g}, with the variance of Nadeau and Bengio for splits that share rows. "
        "Noise is seeded, test rows are looked at: nothing here is a private release."
    )


def _ahead(lines: Sequence[Line]) -> list[str]:
    found = ahead_of_us(lines)
    cells = sum(len(line.differences) for line in lines if not line.method.own)
    told = [
        wrapped(f"Of {cells} comparisons with the private methods of others, these have a better mean than privfit:"),
        "",
    ]
    if not found:
        return [wrapped(f"Nowhere: in none of {cells} comparisons has a private method of others a better mean.")]
    told += ["| table | measure | epsilon | method | by | p-value |", "|---|---|---|---|---|---|"]
    for line, measure in found:
        difference = line.differences[measure]
        told.append(
            f"| {line.table} | {TITLES[measure]} | {line.epsilon:g} | {line.method.name} | {-difference.mean:.4g} | "
            f"{difference.p_value:.2g} |"
        )
    return told


def _table(lines: Sequence[Line], measure: str) -> list[str]:
    epsilons = sorted({line.epsilon for line in lines if line.epsilon})
    told = [f"| method | {' | '.join(f'{epsilon:g}' for epsilon in epsilons)} |", "|---" * (len(epsilons) + 1) + "|"]
    for name in dict.fromkeys(line.method.name for line in lines):
        by = {line.epsilon: line for line in lines if line.method.name == name}
        told.append(f"| {name} | {' | '.join(_cell(by.get(each) or by.get(0.0), measure) for each in epsilons)} |")
    return told


def _cell(line: Line | None, measure: str) -> str:
    if line is None:
        return "not measured"
    if measure not in line.spreads:
        return "no answer"
    spread, mark = line.spreads[measure], ""
    if measure in line.differences:
        mark = {"ahead": " ▼", "level": "", "behind": " ▲"}[line.differences[measure].verdict]
    missing = f" ({len(line.failed)} of {len(line.failed) + spread.splits} no answer)" if line.failed else ""
    return f"{shortened(spread.mean)} ± {shortened(spread.deviation)}, {shortened(spread.worst)}{mark}{missing}"


def shortened(value: float) -> str:
    """Four decimals below 10, without a zero before the point; fewer of larger numbers."""
    if abs(value) >= 10:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"
    sign = "-" if value < 0 else ""
    return sign + f"{abs(value):.4f}".removeprefix("0")


def _who(lines: Sequence[Line]) -> list[str]:
    there = {line.method.name for line in lines}
    told = ["| method | promise | packages | what |", "|---|---|---|---|"]
    for method in METHODS:
        if method.name in there:
            packages = ", ".join(method.environment.packages) or "here"
            promise = {"pure": "epsilon", "delta": "epsilon, delta", "none": "none"}[method.promise]
            told.append(f"| {method.name} | {promise} | {packages} | {method.about} |")
    reasons = sorted({f"{line.method.name} on {line.table}: {reason}" for line in lines for reason in line.failed})
    return told + (["", "No answers:", ""] + [wrapped(f"- {reason}") for reason in reasons] if reasons else [])
