"""`privfit explore`: what the page computes, whom it answers, and how it behaves in a real browser."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import privfit as pf
from privfit.planning.what_if import supposed_schema, what_if, wider

pytest.importorskip("dash")
from privfit.cli.explore_page import EPSILONS, LEAST_SHOWN, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PHONE, DESK = 360, 1280


# -- what it computes ------------------------------------------------------------------------------


def lost(rows: int, columns: int, bounds: float) -> np.ndarray:
    """What noise costs at each epsilon."""
    found = what_if(supposed_schema(columns, "linear"), rows, model="linear", epsilon=EPSILONS, times_as_wide=bounds)
    return found.reference - np.array([one.score for one in found.curve()])


def test_rows_help_and_columns_and_bounds_cost() -> None:
    middle = lost(10_000, 6, 1)
    assert middle[-1] < 0.01 < middle[0]
    assert lost(100_000, 6, 1)[0] < middle[0] < lost(1_000, 6, 1)[0]
    assert middle[1] < lost(10_000, 20, 1)[1]
    assert middle[1] < lost(10_000, 6, 8)[1]


def test_bounds_are_wider_about_the_same_middle_and_levels_stay() -> None:
    schema = pf.Schema([pf.Numeric("x", 2, 4), pf.Category("c", ["a", "b"])], target=pf.Numeric("y", 0, 10))
    found = wider(schema, 3)
    assert [(one.low, one.high) for one in (found.features[0], found.target)] == [(0, 6), (-10, 20)]
    assert found.features[1] == schema.features[1]
    assert wider(schema, 1) == schema


def test_the_picture_has_the_forecasts_and_the_chosen_epsilon() -> None:
    page = Page("linear", None)
    picture, words, *told = page.answer(*(one.start for one in page.sliders))
    curve, reference, chosen = picture["data"]
    plan = what_if(supposed_schema(6, "linear"), 10_000, model="linear", epsilon=EPSILONS)
    assert curve["y"] == [one.score for one in plan.curve()]
    assert reference["y"] == [plan.reference] * 2
    assert chosen["x"] == [0.8]
    assert told == ["0.8", "10,000", "6", "1"]
    assert words.startswith(f"At epsilon 0.8 the R^2 is expected to be {chosen['y'][0]:.3f} ")


def test_an_axis_ends_where_scores_say_nothing() -> None:
    page = Page("linear", None)
    picture = page.answer(0, 0, len(page.sliders[2].values) - 1, 8)[0]
    assert min(picture["data"][0]["y"]) < 2 * LEAST_SHOWN < picture["layout"]["yaxis"]["range"][0] < LEAST_SHOWN + 0.01


def test_a_schema_of_ones_own_gives_columns_and_target() -> None:
    schema = pf.Schema([pf.Numeric("x", 0, 1), pf.Numeric("z", 0, 1)], target=pf.Category("ill", ["no", "yes"]))
    page = Page("logistic", schema)
    assert page.sliders[2].values == (1, 2)
    picture, words, *_ = page.answer(*(one.start for one in page.sliders))
    assert "share of right classes" in words
    assert picture["data"][0]["y"] != page.answer(7, 3, 0, 0)[0]["data"][0]["y"]


# -- whom it refuses -------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_a_host_that_others_reach_is_refused(run: Any, host: str) -> None:
    found = run("explore", "--host", host)
    assert found.exit_code == 1
    assert "for this machine alone. Nothing was started." in found.stderr


def test_models_and_targets_that_do_not_fit_are_refused(run: Any, folder: Path) -> None:
    assert "Name one of these" in run("explore", "--model", "forest").stderr
    assert "predicts a Category target" in run("explore", "linear.toml", "--model", "logistic").stderr


def test_a_port_that_is_taken_is_an_error_in_words(run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = run("explore", "--port", taken.getsockname()[1])
    assert found.exit_code == 1
    assert "cannot be listened on" in found.stderr


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "privfit", "explore", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        assert served.stderr is not None
        lines = [served.stdout.readline() for _ in range(3)]
        yield json.loads("".join(lines))["address"]
        served.send_signal(signal.SIGINT)
        assert served.wait(20) == 0
        assert served.stderr.read() == "Ended.\n"


def asked(address: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    connection.request("GET", "/", headers=headers)
    return connection.getresponse()


def test_it_listens_on_this_machine_alone(address: str) -> None:
    port = urlsplit(address).port
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    places = [fields[1] for fields in listening if fields[1].endswith(f":{port:04X}") and fields[3] == "0A"]
    assert places == [f"0100007F:{port:04X}"]


def test_only_its_own_name_and_page_are_answered(address: str) -> None:
    own = urlsplit(address).netloc
    port = own.partition(":")[2]
    assert asked(address).status == 200
    assert asked(address, Host=f"localhost:{port}").status == 200
    assert asked(address, Origin=f"http://{own}").status == 200
    for host in (f"evil.example:{port}", "evil.example", "127.0.0.1", f"127.0.0.1.evil.example:{port}"):
        assert asked(address, Host=host).status == 403
    for origin in ("http://evil.example", "null", f"https://{own}", f"http://{own}.evil.example"):
        assert asked(address, Origin=origin).status == 403


def test_the_page_names_no_other_place_and_has_a_policy(address: str) -> None:
    answer = asked(address)
    policy = answer.headers["Content-Security-Policy"]
    text = answer.read().decode()
    assert re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", text) == []
    assert policy.startswith("default-src 'none'; script-src 'self' 'sha256-")
    assert "unsafe-eval" not in policy
    assert "connect-src 'self';" in policy


# -- in a browser ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Any]:
    """Opens the page at a width; a complaint of the browser, or a request to another place, is an error."""
    complaints: list[str] = []

    def at(width: int) -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda one: complaints.extend([one.url] * (not one.url.startswith(address))))
        page.goto(address)
        page.wait_for_selector("#words:not(:empty)", timeout=60_000)
        page.wait_for_selector("#curve .scatterlayer path.js-line", timeout=60_000)
        return page

    yield at
    assert complaints == []


CURVE = "document.querySelector('#curve .scatterlayer path.js-line').getAttribute('d')"


def until(page: Any, holds: Callable[[], bool]) -> None:
    """Wait for what happens in the page. The page's policy lets no text become code, so this waits here."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


@pytest.mark.parametrize(("slider", "key"), [("rows", "ArrowLeft"), ("columns", "End"), ("bounds", "ArrowRight")])
def test_the_curve_follows_a_slider(opened: Any, slider: str, key: str) -> None:
    page = opened(DESK)
    curve, words, stood = page.evaluate(CURVE), page.inner_text("#words"), page.inner_text(f"#{slider}-value")
    page.focus(f"#{slider}")
    page.keyboard.press(key)
    until(page, lambda: page.evaluate(CURVE) != curve and page.inner_text("#words") != words)
    assert page.inner_text(f"#{slider}-value") != stood


def test_moving_epsilon_with_the_mouse_moves_the_mark(opened: Any) -> None:
    page = opened(DESK)
    box = page.locator("#epsilon").bounding_box()
    page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)
    until(page, lambda: page.inner_text("#words").startswith("At epsilon 0.05 "))
    assert page.inner_text("#epsilon-value") == "0.05"


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_it_is_readable_and_axe_finds_nothing(opened: Any, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python")
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 10
    assert [(one["id"], one["impact"]) for one in found["violations"]] == []
    names = page.evaluate("[...document.querySelectorAll('input[type=range]')].map(one => one.labels[0].innerText)")
    assert [name.split(":")[0] for name in names] == ["Epsilon", "Rows", "Columns", "Bounds, times as wide as needed"]
