"""`python -m tests.fuzz`: coverage-guided fuzzing of schemas, models, ledgers, tables and command lines.

It starts from the inputs in tests/fuzz/corpus/ and from what earlier runs kept in `--work`, and ends at the first input
that breaks a rule, which it writes to fuzz-found/. `--merge` moves what reaches new lines into the corpus, `--run FILE`
runs one input, whose target is the name of its folder or given. Needs atheris: pip install 'privfit[fuzz]'.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.corpus import CORPUS, TARGETS, merge, run

FOUND = Path("fuzz-found")
MEMORY = Path("/dev/shm")
LONGEST = 600
"""Bytes of an input: the longest that a target reads."""


def main(arguments: list[str] | None = None) -> int:
    """Fuzz, merge or replay, and say what was done."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"{', '.join(TARGETS)}; all without one")
    parser.add_argument("--seconds", type=int, default=60, help="how long each target is fuzzed")
    parser.add_argument("--work", type=Path, default=Path(".fuzz"), help="where inputs of all runs are kept")
    parser.add_argument("--merge", action="store_true", help="move what reaches new lines into the corpus")
    parser.add_argument("--run", type=Path, metavar="FILE", help="run one input")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    if options.run:
        run((options.targets or [options.run.resolve().parent.name])[0], options.run.read_bytes())
        print("nothing was found")
        return 0
    if options.inside:
        _fuzz_here(options.targets[0], options.seconds, options.work)
    found = False
    for name in options.targets or TARGETS:
        if options.merge:
            kept, lines = merge(name, options.work / name)
            print(f"{name:9} {kept} inputs in the corpus, {lines:,} steps between lines", flush=True)
        else:
            found |= _fuzz(name, options)
    return int(found)


def _fuzz(name: str, options: argparse.Namespace) -> bool:
    """Fuzz one target in a process of its own; whether something was found."""
    FOUND.mkdir(exist_ok=True)
    for folder in (options.work / name, CORPUS / name):
        folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz", name, "--inside", f"--seconds={options.seconds}"]
    start = time.monotonic()
    here = {"RUST_BACKTRACE": "0"} | ({"TMPDIR": str(MEMORY)} if os.access(MEMORY, os.W_OK) else {})
    with (FOUND / f"{name}.log").open("w+", encoding="utf-8", errors="replace") as log:
        ended = subprocess.run([*command, f"--work={options.work}"], stderr=log, stdout=log, env=os.environ | here)
        log.seek(0)
        told = log.read()
    runs = re.findall(r"number_of_executed_units: *(\d+)", told) or re.findall(r"^#(\d+)\s", told, re.M) or ["0"]
    kept = len(list((options.work / name).iterdir()))
    print(f"{name:9} {int(runs[-1]):,} runs in {time.monotonic() - start:,.0f} s, {kept:,} inputs kept", end="")
    failed = ended.returncode != 0 or not kept  # without one, nothing guided it
    print(f"; FOUND something: {FOUND}/{name}.log" if failed else ", nothing found", flush=True)
    return failed


def _fuzz_here(name: str, seconds: int, work: Path) -> None:
    """Fuzz in this process, which ends with it."""
    try:
        import atheris
    except ImportError:
        sys.exit("Fuzzing needs atheris: pip install 'privfit[fuzz]' (Linux, Python 3.11 to 3.13).")
    if "privfit" in sys.modules:
        sys.exit("privfit was imported before its code could be instrumented: nothing would guide the fuzzer.")
    with atheris.instrument_imports(include=["privfit", f"tests.fuzz.{name}"]):
        run(name, b"")  # what is imported late is there now
    settings = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        "-timeout=60",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
    ]
    atheris.Setup(
        [sys.argv[0], *settings, f"-artifact_prefix={FOUND}/{name}-", str(work / name), str(CORPUS / name)],
        lambda content: run(name, content),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
