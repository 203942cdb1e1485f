"""All attacks on all cases: in several processes, from where an earlier audit stopped, with progress."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from threadpoolctl import threadpool_limits

from privfit.audit.attacks import (
    FULL,
    QUICK,
    Effort,
    PairFits,
    attack_black_box,
    attack_density,
    attack_ledger,
    attack_order,
    attack_replay,
)
from privfit.audit.cases import Case
from privfit.audit.catalogue import catalogue, of_estimator
from privfit.audit.precision import attack_precision
from privfit.audit.table import AuditResult, Finding
from privfit.models.private import AnyModel
from privfit.privacy import PrivacyError
from privfit.schema import Schema

Progress = Callable[[int, int, str], None]
"""Takes how many cases are done, of how many, and which was the last."""


def mechanisms(
    quick: bool = True,
    estimators: Sequence[type[AnyModel]] | None = None,
    schema: Schema | None = None,
    seed: int = 0,
    *,
    names: Sequence[str] | None = None,
    n_jobs: int = 1,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Attack everything that releases something: estimators with every mechanism, publishers, baselines and functions.

    Tables are made from public facts; no table of yours is read and no ledger of yours is charged. Noise of
    the audit's own fits is not secret; fits in other threads draw as ever.

    Parameters
    ----------
    quick : bool, default=True
        Whether to make few runs, or many at three prices.
    estimators : sequence of type or None, default=None
        Classes to attack, such as one of your own; None: everything that there is.
    schema : Schema or None, default=None
        Public facts to make tables from; None: built-in ones. What does not take its columns or its target is left
        out. Its row filter and its column of persons are not used.
    seed : int, default=0
        Of the rows that are tried.
    names : sequence of str or None, default=None
        Names of estimators and functions to attack; None: all.
    n_jobs : int, default=1
        Number of processes. Classes of your own are attacked in this one.
    resume : str, Path or None, default=None
        A file to which every line is written at once. What it holds already is not done again.
    progress : callable or None, default=None
        Called as `progress(done, cases, last)` after every case.

    Returns
    -------
    AuditResult
        A line per mechanism, setting and attack; printed, it is a table.

    Raises
    ------
    PrivacyError
        If a name is unknown, or `resume` is the file of another audit.

    See Also
    --------
    AuditResult : What it returns.
    black_box : Attacks anything that can be called on two tables.

    Examples
    --------
    >>> import privfit as pf
    >>> found = pf.audit.mechanisms(names=["quantile"])
    >>> found.violated
    False
    """
    if estimators is None:
        cases = catalogue(schema, seed, full=not quick)
    else:
        cases = [own for estimator in estimators for own in of_estimator(estimator, schema, seed)]
    known = dict.fromkeys(case.name for case in cases)
    if names is not None:
        if not set(names) <= known.keys() or not names:
            raise PrivacyError(
                f"{', '.join(names) or 'No name'} was given; here an audit knows {', '.join(known) or 'nothing'}. "
                "Name some of these, or give another schema."
            )
        cases = [case for case in cases if case.name in names]
    state = State(resume, {"quick": quick, "seed": seed, "schema": "" if schema is None else repr(schema)})
    left = [place for place, case in enumerate(cases) if case.key not in state.found]
    done = len(cases) - len(left)
    effort = QUICK if quick else FULL
    ready: Iterator[tuple[int, list[Finding]]]
    if n_jobs == 1 or estimators is not None:
        ready = ((place, attacks(cases[place], effort)) for place in left)
    else:
        ready = _in_processes([cases[place].key for place in left], left, schema, seed, effort, n_jobs)
    for place, findings in ready:
        state.add(cases[place].key, findings)
        done += 1
        if progress is not None:
            progress(done, len(cases), cases[place].key)
    return AuditResult.of(finding for case in cases for finding in state.found[case.key])


def attacks(case: Case, effort: Effort) -> list[Finding]:
    """All attacks on a case. What raises before anything is charged is a line too."""
    try:
        with threadpool_limits(1), warnings.catch_warnings():  # one process has one core
            warnings.simplefilter("ignore")  # of tables that are made to hurt
            return list(_attacks(case, effort))
    except Exception as error:  # an audit goes on
        return [case.finding("fit", (None, None), 1, f"{type(error).__name__}: {error}")]


def _attacks(case: Case, effort: Effort) -> Iterator[Finding]:
    pairs = case.pairs()
    if not case.setting or effort.every_setting:
        yield attack_black_box(case, pairs[0], effort.runs_of(case))
    else:
        pairs = pairs[:: 2 if len(pairs) > 6 else 1][:5] + pairs[1:2]
    fits = PairFits(case)
    yield from attack_replay(case, pairs, effort.steps, fits)
    yield from attack_density(case, pairs, effort.steps, fits)
    yield attack_precision(case, pairs[0])
    yield attack_order(case, pairs[0])
    yield attack_ledger(case, pairs[0])


# -- several processes -------------------------------------------------------------------------------


def _in_processes(
    keys: list[str], places: list[int], schema: Schema | None, seed: int, effort: Effort, n_jobs: int
) -> Iterator[tuple[int, list[Finding]]]:
    """Cases in processes of their own, as they end. They are named by their keys: functions cannot be pickled."""
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        sent = {
            pool.submit(_attacked, key, schema, seed, effort): place for key, place in zip(keys, places, strict=True)
        }
        for ended in as_completed(sent):
            yield sent[ended], ended.result()


def _attacked(key: str, schema: Schema | None, seed: int, effort: Effort) -> list[Finding]:
    case = next(one for one in catalogue(schema, seed, full=effort.every_setting) if one.key == key)
    return attacks(case, effort)


# -- where an earlier audit stopped ------------------------------------------------------------------


class State:
    """What is found, by case; in a file of JSON lines where one is named, so that nothing is done twice."""

    def __init__(self, path: str | Path | None, about: dict[str, object]) -> None:
        self.found: dict[str, list[Finding]] = {}
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        if not self._path.exists():
            self._path.write_text(json.dumps(about) + "\n", encoding="utf-8")
            return
        first, *lines = self._path.read_text(encoding="utf-8").splitlines() or [""]
        if first != json.dumps(about):
            raise PrivacyError(
                f"resume={str(path)!r} is not the file of an audit like this one: its first line does not say "
                f"{json.dumps(about)}. Give the same settings, or another file."
            )
        whole = [first]
        for line in lines:
            try:
                plain = json.loads(line)
            except json.JSONDecodeError:
                continue  # a last line that was cut off
            whole.append(line)
            self.found[plain["case"]] = [Finding(**finding) for finding in plain["findings"]]
        self._path.write_text("\n".join(whole) + "\n", encoding="utf-8")

    def add(self, key: str, findings: list[Finding]) -> None:
        """Keep what was found about a case, durably."""
        self.found[key] = findings
        if self._path is None:
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"case": key, "findings": [asdict(one) for one in findings]}) + "\n")
            file.flush()
            os.fsync(file.fileno())
