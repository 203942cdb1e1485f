"""A virtual environment for each peer, made once, with a sentence instead where that fails."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from privfit_papers.bench.board.methods import Environment

LONGEST_INSTALL = 1800
"""Seconds: dp-xgboost is compiled, which takes some minutes."""


class NoEnvironment(RuntimeError):
    """A peer's environment could not be made. Says why, and what to do."""


def interpreter(environment: Environment, folder: Path, make: bool = True) -> Path:
    """The interpreter of a peer, whose environment is made in the folder if it is not there yet."""
    if environment.here:
        return Path(sys.executable)
    own = folder / f"{environment.name}-{_digest(environment)}"
    if not (own / "ready").is_file():
        if not make:
            raise NoEnvironment(f"{environment.name} is not installed. Leave out --no-install to install it.")
        _make(environment, own)
    return _python(own)


def _digest(environment: Environment) -> str:
    """Other packages are another environment."""
    told = "|".join((*environment.packages, sys.version.split()[0]))
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _make(environment: Environment, folder: Path) -> None:
    install = [str(_python(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run(
            [*install, *environment.packages], check=True, capture_output=True, text=True, timeout=LONGEST_INSTALL
        )
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise NoEnvironment(
            f"{environment.name} is not measured: {', '.join(environment.packages)} could not be installed "
            f"({_reason(error)}). Run the command again where a package index can be reached and a compiler is there, "
            "or leave it out."
        ) from error
    (folder / "ready").touch()


def _reason(error: Exception) -> str:
    """The last error of pip, without addresses."""
    told = getattr(error, "stderr", None) or ""
    lines = [line.strip() for line in str(told).splitlines() if "error" in line.lower() and "://" not in line]
    return (lines[-1] if lines else type(error).__name__)[:160]
