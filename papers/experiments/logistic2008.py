"""The simulation of Chaudhuri and Monteleoni (NIPS 2008, section 6), with the paper's figures beside ours.

    python papers/experiments/logistic2008.py
        about four minutes of one core: 200 draws of the noise per fold, 40 for curves
    python papers/experiments/logistic2008.py --quick
        under a minute: 20 draws for the table, 5 for all else, and short curves

Printed, in Markdown: what Algorithm 2 as printed really loses; the search for the epsilon that the paper does not
state; the paper's table at that epsilon; learning and epsilon curves; and how the paper's ridge does on other points.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Literal

from threadpoolctl import threadpool_limits

from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms import ObjectivePerturbation
from privfit_papers.bench.printed_objective import largest_loss, two_column_loss
from privfit_papers.bench.simulated import (
    DEFAULT,
    EPSILONS,
    KINDS,
    METHODS,
    NEAR,
    OURS,
    PAPER,
    PRINTED,
    REPAIRED,
    RIDGE,
    SENSITIVITY,
    SIZES,
    STANDARD,
    Default,
    Errors,
    Kind,
    Printed,
    Repaired,
    Sensitivity,
    closest_epsilon,
    distances,
    epsilon_curve,
    holdout_errors,
    learning_curve,
    plan_in_ball,
    table_of_errors,
)

N_ROWS = 14_000


def show(title: str, heads: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    print(f"\n## {title}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for line in lines:
        print(
            "| " + " | ".join(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in line) + " |",
            flush=True,
        )


def losses(loss: ConvexLoss, scale: float, ridge: float) -> tuple[float, float]:
    """The largest losses found with one column and with two."""
    return largest_loss(loss, scale, ridge), two_column_loss(loss, scale, ridge)


def ours(epsilon: float, ridge: float, steepest: float | Literal["auto"]) -> tuple[float, float]:
    """The largest loss of privfit's rule, and the ridge that it used."""
    plan = plan_in_ball(ObjectivePerturbation(ridge, "l2", steepest), 2, epsilon, N_ROWS)
    return max(losses(plan.gradients.loss, plan.event.scale / plan.event.unit, plan.ridge)), plan.ridge


def true_losses() -> None:
    lines = []
    for epsilon in (0.1, 1.0):
        for ridge in (0.001, 0.1, 1.0, 10.0, 100.0):
            (whole, raised), (halved, _) = ours(epsilon, ridge, 1.0), ours(epsilon, ridge, "auto")
            lines.append(
                (f"{epsilon:g}", f"{ridge:g}", *losses(LOGISTIC, 2 / epsilon, ridge), whole, halved, f"{raised:.4g}")
            )
    heads = (
        "epsilon",
        "n * lambda",
        "printed, one column",
        "printed, two columns",
        "repaired",
        "slopes up to 1/2",
        "ridge of the repair",
    )
    show("Largest loss of privacy found", heads, lines)


def search(epsilons: Sequence[float], draws: int) -> float:
    curves = [row for kind in KINDS for row in epsilon_curve(kind, epsilons, (Sensitivity(), Printed()), draws)]
    means = {(row.table, row.method, row.epsilon): row.mean for row in curves}
    far = distances(curves)
    lines = [
        (
            f"{epsilon:g}",
            *(means[kind, method, epsilon] for kind in KINDS for method in (SENSITIVITY, PRINTED)),
            far[epsilon],
        )
        for epsilon in epsilons
    ]
    lines.append(("paper", *(PAPER[kind][method][0] for kind in KINDS for method in (SENSITIVITY, PRINTED)), ""))
    heads = ("epsilon", *(f"{kind}, {method}" for kind in KINDS for method in ("sensitivity", "new")), "distance")
    show("The epsilon that the paper does not state", heads, lines)
    found = closest_epsilon(curves)
    print(
        f"\nClosest: epsilon = {found:g}. Curvature is free, and the printed noise enough, from n * lambda = 2 / "
        f"epsilon = {2 / found:.4g} on; ",
        end="",
    )
    print(f"here n * lambda = {N_ROWS * RIDGE:g}.")
    return found


def spread(row: Errors) -> str:
    return f"{row.mean:.4f} ± {row.deviation:.4f} ({row.of_folds:.4f})"


def table(epsilon: float, draws: int) -> None:
    rows = {
        (kind, row.method): row for kind in KINDS for row in table_of_errors(kind, epsilon, (*METHODS, *OURS), draws)
    }
    lines: list[list[str]] = []
    for method in (SENSITIVITY, PRINTED, STANDARD, *(each.name for each in OURS)):
        line = [method, "yes" if rows[KINDS[0], method].private else "no"]
        for kind in KINDS:
            paper = PAPER[kind].get(method)
            line += ["" if paper is None else f"{paper[0]:.4f} ± {paper[1]:.4f}", spread(rows[kind, method])]
        lines.append(line)
    heads = ("method", "private", *(f"{kind}, {who}" for kind in KINDS for who in ("paper", "here")))
    show(f"Test errors at epsilon = {epsilon:g}: mean ± deviation over folds and draws (over folds)", heads, lines)


def curves(epsilon: float, sizes: Sequence[int], epsilons: Sequence[float], draws: int) -> None:
    methods = (*METHODS, Repaired())
    names = (SENSITIVITY, PRINTED, REPAIRED, STANDARD)
    for kind in KINDS:
        found = {(row.rows, row.method): row.mean for row in learning_curve(kind, epsilon, sizes, methods, draws)}
        loss = {size: two_column_loss(LOGISTIC, 2 / epsilon, size * RIDGE, size) for size in sizes}
        show(
            f"Learning curve, {kind}, epsilon = {epsilon:g}",
            ("rows", *names, "epsilon as printed, at least"),
            [(size, *(found[size, name] for name in names), loss[size]) for size in sizes],
        )
    for kind in KINDS:
        show(f"Epsilon curve, {kind}", ("epsilon", *names, DEFAULT), epsilon_lines(kind, epsilons, names, draws))


def epsilon_lines(kind: Kind, epsilons: Sequence[float], names: Sequence[str], draws: int) -> list[tuple[object, ...]]:
    rows = epsilon_curve(kind, epsilons, (*METHODS, Repaired(), Default()), draws)
    found = {(row.epsilon, row.method): row.mean for row in rows}
    return [
        (f"{epsilon:g}", *(found[None if name == STANDARD else epsilon, name] for name in (*names, DEFAULT)))
        for epsilon in epsilons
    ]


def ridges() -> None:
    tried = (0.0001, 0.001, 0.01, 0.1, 1.0)
    errors = {kind: holdout_errors(kind, tried) for kind in KINDS}
    lines = [(f"{ridge:g}", *(errors[kind][ridge] for kind in KINDS)) for ridge in tried]
    show("Logistic regression without noise on 10,000 other points", ("lambda", *KINDS), lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws and short curves")
    quick = parser.parse_args().quick
    with threadpool_limits(1):
        true_losses()
        epsilon = search(NEAR[::2] if quick else NEAR, 5 if quick else 200)
        table(epsilon, 20 if quick else 200)
        curves(epsilon, SIZES[::6] if quick else SIZES, EPSILONS[1::3] if quick else EPSILONS, 5 if quick else 40)
        ridges()


if __name__ == "__main__":
    main()
