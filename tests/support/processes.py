"""Processes with a ledger: started fresh, or forked; told when to go, and asked what they have done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import privfit as pf

# Starts in a tenth of the time of `import privfit`: the package without its models and engines.
LIGHT = f"""
import os, signal, sqlite3, sys, types
package = types.ModuleType("privfit")
package.__path__ = [{str(Path(pf.__file__).parent)!r}]
sys.modules["privfit"] = package
from privfit.privacy import BudgetExceeded, Ledger, LedgerError
ledger = Ledger(sys.argv[1])
os.write(1, b"ready\\n")
sys.stdin.readline()
"""


def start(code: str, path: Path | str) -> subprocess.Popen:
    """A process that opens the ledger as `ledger`, says that it is ready, and runs the code when told to."""
    return subprocess.Popen(
        [sys.executable, "-c", LIGHT + code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def go(*processes: subprocess.Popen) -> None:
    for process in processes:
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        process.stdin.write(b"go\n")
        process.stdin.flush()


def finish(process: subprocess.Popen) -> list[bytes]:
    lines = process.stdout.read().splitlines()
    process.stdin.close()
    process.stdout.close()
    process.wait(60)
    return lines


def in_child(function) -> object:
    """What a function returns in a forked process, which may drop rights and set limits that a test process could not
    take back.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = function()
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        os.write(writer, json.dumps(result).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer)
