"""The page of `privfit explore`: sliders, a curve, and the same in words. Dash serves it and all that it loads.

Only what a browser on this machine asks for is answered: by the host's own name, and of no page but this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dash import Dash, Input, Output, dcc, html
from flask import Response, abort, request

from privfit.planning.result import Plan
from privfit.planning.what_if import supposed_schema, what_if
from privfit.report.drawing import COLOURS, GREY
from privfit.schema import Schema

EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Where the curve is computed."""
LEAST_SHOWN = -0.25
"""Of R^2: below zero a fit is worse than the mean alone, and how much worse says nothing more."""
KEPT_PLANS = 512
"""Forecasts that are kept: moving a slider back answers at once."""


@dataclass(frozen=True)
class Slider:
    """A public fact that is moved: its values, and how each is written."""

    key: str
    title: str
    values: tuple[float, ...]
    start: int
    shown: Callable[[float], str] = "{:,.10g}".format

    def drawn(self) -> Any:
        """The slider, a browser's own, with its title and the value that it stands at."""
        last = len(self.values) - 1
        knob = dcc.Input(id=self.key, type="range", min=0, max=last, step=1, value=self.start, className="range")
        ends = html.Div(
            [html.Span(self.shown(self.values[0])), html.Span(self.shown(self.values[last]))], className="ends"
        )
        title = html.Label([f"{self.title}: ", html.Output(id=f"{self.key}-value")], htmlFor=self.key)
        return html.Div([title, knob, ends])


def sliders(most_columns: int | None) -> tuple[Slider, ...]:
    """What can be moved. A schema of the user's own has so many columns, and the first of them are used."""
    supposed = (2, 4, 6, 8, 10, 15, 20, 30, 40)
    columns = supposed if most_columns is None else tuple(range(1, most_columns + 1))
    start = 2 if most_columns is None else len(columns) - 1
    return (
        Slider("epsilon", "Epsilon", (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 1.6, 2.4, 3.2), 7),
        Slider("rows", "Rows", (300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6), 3),
        Slider("columns", "Columns", columns, start),
        Slider("bounds", "Bounds, times as wide as needed", (1, 1.5, 2, 3, 4, 6, 8, 12, 16), 0),
    )


@dataclass(frozen=True)
class Page:
    """What the page computes: forecasts of a model, for a schema of the user's or for tables that nobody has."""

    model: str
    schema: Schema | None

    @property
    def sliders(self) -> tuple[Slider, ...]:
        """What can be moved here."""
        return sliders(None if self.schema is None else len(self.schema.features))

    def answer(self, *places: float) -> tuple[Any, ...]:
        """The picture, the same in words, and what each slider stands at."""
        moved = [float(one.values[int(place)]) for one, place in zip(self.sliders, places, strict=True)]
        epsilon, rows, columns, bounds = moved
        asked = self.schema, self.model, int(rows), int(columns), bounds
        curve, here = planned(*asked, EPSILONS), planned(*asked, (epsilon,))
        shown = (one.shown(value) for one, value in zip(self.sliders, moved, strict=True))
        return picture(curve, here), in_words(here), *shown


@lru_cache(maxsize=KEPT_PLANS)
def planned(
    schema: Schema | None, model: str, rows: int, columns: int, bounds: float, epsilon: tuple[float, ...]
) -> Plan:
    """The forecast at these epsilons."""
    if schema is None:
        asked = supposed_schema(columns, model)
    else:
        asked = Schema(list(schema.features)[:columns], schema.target)
    return what_if(asked, rows, model=model, epsilon=epsilon, times_as_wide=bounds)


def picture(curve: Plan, here: Plan) -> dict[str, Any]:
    """Scores against epsilon, as plotly draws them."""
    scores, chosen = curve.curve(), here.forecasts[0]
    ends = [EPSILONS[0], EPSILONS[-1]]
    lines = [
        {
            "name": "forecast, with its spread",
            "x": [one.epsilon for one in scores],
            "y": [one.score for one in scores],
            "error_y": {"array": [one.deviation for one in scores], "color": COLOURS[0]},
            "line": {"color": COLOURS[0]},
        },
        {
            "name": "without noise",
            "x": ends,
            "y": [curve.reference] * 2,
            "mode": "lines",
            "line": {"color": GREY, "dash": "dash"},
        },
        {
            "name": f"at epsilon {chosen.epsilon:g}",
            "x": [chosen.epsilon],
            "y": [chosen.score],
            "mode": "markers",
            "marker": {"color": COLOURS[1], "size": 13, "symbol": "diamond"},
        },
    ]
    return {"data": lines, "layout": _axes(curve)}


def _axes(curve: Plan) -> dict[str, Any]:
    scores = [one.score - one.deviation for one in curve.forecasts]
    top = max(curve.reference, *(one.score + one.deviation for one in curve.forecasts))
    low = max(min(scores), LEAST_SHOWN)
    room = 0.08 * (top - low) or 0.01
    return {
        "template": "none",
        "font": {"size": 15},
        "margin": {"l": 70, "r": 20, "t": 20, "b": 130},
        "legend": {"orientation": "h", "y": -0.25},
        "xaxis": {"type": "log", "title": {"text": "epsilon"}, "tickvals": EPSILONS, "ticktext": EPSILONS},
        "yaxis": {"title": {"text": curve.measure}, "range": [low - room, top + room]},
    }


def in_words(plan: Plan) -> str:
    """The forecast at the chosen epsilon."""
    found = plan.forecasts[0]
    return (
        f"At epsilon {found.epsilon:g} the {plan.measure} is expected to be {found.score:.3f} (standard deviation "
        f"{found.deviation:.3f}), against {plan.reference:.3f} without noise."
    )


STYLE = """
body { font: 17px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; max-width: 1100px; padding: 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; } label, .words { font-weight: 600; } .words { min-height: 3em; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 1rem 3rem; }
.range, .range input { width: 100%; border: 0; padding: 0; } .range input { accent-color: #0072B2; }
.ends { display: flex; justify-content: space-between; font-size: 0.9rem; }
"""
HEAD = "{%metas%}<title>{%title%}</title>{%favicon%}{%css%}"
BODY = "{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer>"
INDEX = f'<!DOCTYPE html><html lang="en"><head>{HEAD}<style>{STYLE}</style></head><body>{BODY}</body></html>'


def made_app(page: Page, hosts: Sequence[str]) -> Dash:
    """The page as a web application that answers to these hosts, each a name with a port."""
    app = Dash(
        __name__,
        title="privfit explore",
        update_title="",
        assets_folder="",
        include_assets_files=False,
        index_string=INDEX,
        serve_locally=True,
        enable_mcp=False,
    )
    app.layout = _layout(page)
    shown = [Output(f"{one.key}-value", "children") for one in page.sliders]
    moved = [Input(one.key, "value") for one in page.sliders]
    app.callback(Output("curve", "figure"), Output("words", "children"), *shown, *moved)(page.answer)
    app.server.before_request(lambda: _refuse_others(hosts))
    policy = _policy(app)
    app.server.after_request(lambda response: _with_policy(response, policy))
    return app


def _layout(page: Page) -> Any:
    source = "the schema that was given" if page.schema else "tables that nobody has: two numbers for each category"
    note = (
        f"Forecasts by simulation, from {source}. No private table is read and nothing is spent. Effects are made up: "
        "features explain 30% of the target. Take it as an order of magnitude; privfit plan says more."
    )
    return html.Main(
        [
            html.H1(f"What will a private fit give? Model: {page.model}"),
            html.Div([one.drawn() for one in page.sliders], className="facts"),
            dcc.Graph(id="curve", config={"displayModeBar": False, "staticPlot": True}),
            html.P(id="words", className="words", role="status"),
            html.P(note),
        ]
    )


def _refuse_others(hosts: Sequence[str]) -> None:
    """A name that leads here from elsewhere, or a page from elsewhere that asks: refused."""
    origin = request.headers.get("Origin")
    if request.host not in hosts or (origin is not None and origin.removeprefix("http://") not in hosts):
        abort(403)


def _policy(app: Dash) -> str:
    scripts = " ".join(("'self'", *app.csp_hashes()))
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "connect-src 'self'; font-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def _with_policy(response: Response, policy: str) -> Response:
    response.headers["Content-Security-Policy"] = policy
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
