"""What a user gets from the package index: built, installed in empty environments, measured and tried there.

    python tools/installed.py                 # all of it, about ten minutes
    python tools/installed.py build lowest    # some of it
    python tools/installed.py pythons --python ~/.pyenv/versions/3.13.0/bin/python   # a Python that is not on the path

- build: a source distribution, and from it a wheel; the wheel in an empty environment: its size with everything that it
  needs, how long `import privfit` takes against `import sklearn.linear_model`, `privfit demo`, its types.
- lowest, newest: the oldest and the newest releases that pyproject.toml allows of everything that it names, and a quick
  set of tests with them.
- pythons: whether every supported Python has wheels of all dependencies, oldest and newest; where that Python is
  installed also the demo and the tests. With --python this alone, for the Pythons that are named.

uv resolves and installs; it is fetched into an environment of its own. Exit code 1 means that something failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000
MOST_MEGABYTES = 900
"""What is reached, to be lowered; 400 were wanted. OpenDP alone has 264, the library of polars 170, pyarrow 165, scipy
113 (with numpy and scikit-learn 210), and privfit 4."""
IMPORTS = 7
"""Imports that a time is the median of: enough for a ratio that varies by a tenth. Chosen, not measured."""
NAMED = ("numpy", "scipy", "scikit-learn", "polars", "pyarrow", "opendp", "typer", "rich")
"""Whose versions are printed."""
TESTING = ("pytest>=8.1", "pytest-xdist>=3.6", "hypothesis>=6.100")
QUICK = (
    "tests/tables/test_engines.py",
    "tests/rows/test_rows.py",
    "tests/models/test_saving.py",
    "tests/cli/test_predict.py",
    "tests/cli/test_process.py",
)
"""Tests that enter every dependency: engines, sums, models and their files, the ledger, and the command line."""


class Failed(Exception):
    """A step that did not do what it should."""


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """What a command prints on stdout; its end on stderr where it fails."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # what is installed, not src/
    asked = [str(part) for part in command]
    done = subprocess.run(asked, cwd=folder, env=own, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def environment(folder: Path) -> Path:
    """An empty environment: the path of its Python."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def uv(folder: Path) -> Path:
    """uv, in an environment of its own."""
    if not (folder / "uv").exists():
        run(environment(folder / "uv"), "-m", "pip", "install", "--quiet", "uv")
    return folder / "uv" / "bin" / "uv"


def size_of(folder: Path) -> float:
    """Megabytes of the files under a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / MEGABYTE


def supported() -> list[str]:
    """The versions of Python that pyproject.toml names."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    return [found[1] for one in named if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one))]


# -- a wheel in an empty environment ---------------------------------------------------------------


def build(folder: Path) -> None:
    """Build both distributions and try the wheel."""
    python = environment(folder / "build")
    run(python, "-m", "pip", "install", "--quiet", "build")
    run(python, "-m", "build", "--quiet", "--outdir", folder / "dist", ROOT)  # the wheel from the source distribution
    for path in sorted((folder / "dist").iterdir()):
        print(f"built      {path.name}, {path.stat().st_size / MEGABYTE:.1f} MB")
    (wheel,) = (folder / "dist").glob("*.whl")
    clean = environment(folder / "clean")
    packages = Path(run(clean, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    before = size_of(packages)
    run(clean, "-m", "pip", "install", "--quiet", "--no-compile", wheel)
    _in_empty_environment(clean, size_of(packages) - before, folder)


def _in_empty_environment(python: Path, megabytes: float, folder: Path) -> None:
    print(f"installed  {megabytes:.0f} MB, at most {MOST_MEGABYTES}")
    run(python, "-m", "pip", "check")
    ratios = sorted(import_ratio(python) for _ in range(3))
    print(f"import     {ratios[1]:.2f} times as long as of sklearn.linear_model ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    private = python.parent / "privfit"
    print(f"demo       {len(run(private, 'demo', folder=folder).splitlines())} lines")
    typed = run(
        python, "-c", "import privfit, pathlib; print((pathlib.Path(privfit.__file__).parent/'py.typed').exists())"
    )
    print(f"typed      {typed.strip()}")
    if megabytes > MOST_MEGABYTES or typed.strip() != "True":
        raise Failed("The installation is too large, or its types are not there.")


def import_ratio(python: Path) -> float:
    """How much longer one import takes than the other, side by side: medians of processes in turn."""
    times: dict[str, list[float]] = {"privfit": [], "sklearn.linear_model": []}
    for name in [*times] * (IMPORTS + 1):
        code = f"import time; a = time.perf_counter(); import {name}; print(time.perf_counter() - a)"
        times[name].append(float(run(python, "-c", code)))
    ours, theirs = (median(own[1:]) for own in times.values())  # the first one compiles
    return ours / theirs


# -- oldest and newest releases --------------------------------------------------------------------


def tested(resolution: str) -> Callable[[Path], None]:
    """The step that runs the quick tests with releases of one end."""
    return lambda folder: _tested(folder, resolution, f"{sys.version_info.major}.{sys.version_info.minor}")


def _tested(folder: Path, resolution: str, version: str, interpreter: str = sys.executable) -> None:
    own = folder / f"{resolution}-{version}"
    run(uv(folder), "venv", "--quiet", "--python", interpreter, own)
    pins = resolved(folder, resolution, version)
    (folder / "pins.txt").write_text("\n".join(f"{name}=={number}" for name, number in pins.items()), encoding="utf-8")
    python = own / "bin" / "python"
    run(uv(folder), "pip", "install", "--quiet", "--python", python, "-r", folder / "pins.txt", *TESTING)
    run(uv(folder), "pip", "install", "--quiet", "--python", python, "--no-deps", ROOT)
    run(python.parent / "privfit", "demo", folder=own)
    told = run(python, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow", *QUICK)
    print(f"{resolution:10s} Python {version}, {shown(pins)}: {told.strip().splitlines()[-1].strip('= ')}")


def resolved(folder: Path, resolution: str, version: str) -> dict[str, str]:
    """The releases of one end, wheels alone."""
    end = "lowest-direct" if resolution == "lowest" else "highest"
    asked = ("--resolution", end, "--python-version", version, "--only-binary", ":all:", "--no-header", "--no-annotate")
    lines = run(uv(folder), "pip", "compile", "--quiet", *asked, "--extra", "all", ROOT / "pyproject.toml").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def shown(pins: dict[str, str]) -> str:
    """The versions that matter."""
    return ", ".join(f"{name} {pins[name]}" for name in NAMED)


def pythons(folder: Path, named: Sequence[str] = ()) -> None:
    """Every supported Python, or those that are named by their paths, with both ends."""
    there = {version_of(path): path for path in named}
    for version in there or supported():
        interpreter = there.get(version) or shutil.which(f"python{version}")
        for resolution in ("lowest", "newest"):
            if interpreter and version_of(interpreter) == version:
                _tested(folder, resolution, version, interpreter)
            else:
                pins = resolved(folder, resolution, version)
                print(
                    f"{resolution:10s} Python {version}, {shown(pins)}: wheels are there, not run: no such Python here"
                )


def version_of(interpreter: str) -> str:
    """The version of a Python, such as 3.13; nothing if it does not start, as a name without an installation."""
    try:
        return run(interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    except (Failed, OSError):
        return ""


STEPS = {"build": build, "lowest": tested("lowest"), "newest": tested("newest"), "pythons": pythons}


def main(given: list[str] | None = None) -> int:
    """Run steps; 1 if one failed."""
    parser = argparse.ArgumentParser(description="Build, install and try privfit as users get it.")
    parser.add_argument("steps", nargs="*", choices=[*STEPS, []], help="all but for those that are named")
    parser.add_argument("--python", action="append", default=[], help="another Python for `pythons`; repeat for more")
    told = parser.parse_args(given)
    asked = told.steps or (["pythons"] if told.python else list(STEPS))
    if unknown := [path for path in told.python if version_of(path) not in supported()]:
        parser.error(f"--python {unknown[0]} is no Python of a supported version: {', '.join(supported())}")
    failed = []
    with tempfile.TemporaryDirectory(prefix="privfit-installed-") as folder:
        for name in asked:
            try:
                step = partial(pythons, named=told.python) if name == "pythons" else STEPS[name]
                step(Path(folder))
            except Failed as error:
                failed.append(name)
                print(f"{name} failed: {error}", file=sys.stderr)
    if failed:
        print(json.dumps({"failed": failed}), file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
