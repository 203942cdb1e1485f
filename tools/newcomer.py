"""The way of a newcomer, by the README alone: from a clone to a released model of a table of one's own, and its report.

    python tools/newcomer.py

Clones this repository's last commit into an empty folder, takes the commands from the README there, runs them in one
shell without Python of the user's, and times each. The facts that a person would fill in are bought, as the README
says. Exit code 1 means that a command failed, that there are more than six, or that the report is not there.
"""

from __future__ import annotations

import csv
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_COMMANDS = 6
KEPT = ("HOME", "LANG", "TMPDIR", "http_proxy", "https_proxy", "no_proxy")
"""Of this environment, with settings of pip: how this machine reaches a package index."""


def commands(readme: str) -> list[str]:
    """What a newcomer types after the clone: each is a line of a block, with the lines that it goes on in."""
    setup, own = (
        readme.split(f"## {title}\n")[1].split("\n## ")[0]
        for title in ("Two commands", "Your own table, without Python")
    )
    lines = [line for part in (setup, own) for line in _blocks(part)]
    start, enter = lines[:2]
    bought = next(line for line in lines if "--buy-bounds" in line)
    fit, report = (next(line for line in lines if line.startswith(f"privfit {name}")) for name in ("fit", "report"))
    return [start, enter, bought, fit, report]


def _blocks(part: str) -> list[str]:
    blocks = "\n".join(re.findall(r"^    (.*)$", part, flags=re.MULTILINE)).replace("\\\n", " ")
    return [re.sub(r"\s+#.*$", "", line).strip() for line in blocks.splitlines()]


def people(path: Path, rows: int = 20_000) -> None:
    """A table of people who do not exist, as somebody who never saw privfit has one."""
    draw = random.Random(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "sector", "hours", "income"])
        for _ in range(rows):
            age, hours = draw.randint(18, 80), draw.randint(5, 60)
            sector = draw.choice(["public", "private", "private"])
            income = max(0, round(400 * hours + 250 * age + 5000 * (sector == "private") + draw.gauss(0, 6000)))
            writer.writerow([age, sector, hours, income])


def typed(script: list[str], folder: Path) -> tuple[list[float], str]:
    """Run commands in one shell: how long each took as far as they went, and what went wrong."""
    timed = "\n".join(f'{line}\necho "### $(date +%s.%N)"' for line in script)
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("PIP_")}
    start = time.time()
    done = subprocess.run(
        ["bash", "-e", "-c", timed],
        cwd=folder,
        env={**kept, "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    ends = [start, *map(float, re.findall(r"^### (.+)$", done.stdout, flags=re.MULTILINE))]
    return [after - before for before, after in pairwise(ends)], done.stderr if done.returncode else ""


def main() -> int:
    """Go the way; 1 if it does not lead there."""
    own = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="privfit-newcomer-") as folder:
        people(Path(folder) / "people.csv")
        copy = Path(folder) / "privfit"
        clone = f"git clone -q {ROOT} privfit && cd privfit && cp ../people.csv ."
        seconds, wrong = typed([clone, *own], Path(folder))
        for line, took in zip(["git clone ADDRESS privfit; cd privfit", *own], seconds, strict=False):
            print(f"{took:6.1f} s  {' '.join(line.split())}")
        print(f"{sum(seconds):6.1f} s  {len(own) + 1} commands, at most {MOST_COMMANDS}")
        there = (copy / "release.html").is_file() and (copy / "income.json").is_file()
    print(wrong[-2000:], file=sys.stderr, end="")
    return int(bool(wrong) or not there or len(own) + 1 > MOST_COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
