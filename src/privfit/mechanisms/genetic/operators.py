"""Crossover and mutation of the user's own: candidates in, candidates out, never a row.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, section 3: "PrivGene works with any algorithms for them as
long as they do not involve the dataset". Here they are handed copies of candidates that were chosen privately, public
facts and random numbers. How many candidates there are is fixed before, what they return is clipped to the search box,
and the sensitivity is computed from it: docs/proofs/selection.md, Lemma 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import PrivacyError, PublicGenerator, seeded_generator
from privfit.privacy.guarded import attempted, real_numbers, tried
from privfit.privacy.samplers.norms import Source

Floats = NDArray[np.float64]

SEED_WORDS, WORD_BITS = 4, 32
"""128 bits seed the generator that a user's function is given."""
TRIAL_SEED = 20_130_622
"""Public: functions are tried on the same made-up candidates everywhere."""


@dataclass(frozen=True)
class Generation:
    """What a crossover or a mutation knows beside the candidates: public facts and random numbers.

    Parameters
    ----------
    number : int
        How many generations were bred before this one.
    step : ndarray of shape (n_parameters,)
        How far a mutation of `pf.PrivGene` or `pf.GeneticSearch` goes in this generation, for every parameter.
    low : ndarray of shape (n_parameters,)
        Lower bounds of the parameters.
    high : ndarray of shape (n_parameters,)
        Upper bounds of the parameters.
    random : numpy.random.Generator
        Random numbers that hide nothing, fresh for every call.

    See Also
    --------
    Crossover : Makes two candidates of two.
    Mutate : Changes candidates.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> def anywhere_near(children, generation):
    ...     return children + generation.step * generation.random.normal(size=children.shape)
    >>> generation = pf.Generation(0, np.array([0.5]), np.array([-5.0]), np.array([5.0]), np.random.default_rng(0))
    >>> anywhere_near(np.zeros((3, 1)), generation).shape
    (3, 1)
    """

    number: int
    step: Floats
    low: Floats
    high: Floats
    random: PublicGenerator


class Crossover(Protocol):
    """A crossover of the user's own: two arrays of candidates in, two of the same shape out.

    Any function of this form is one; nothing has to be inherited. It never sees a row, so that whatever it does keeps
    the privacy of the search: what it returns is clipped to the search box, NaN counts as the entry that was given, and
    where it fails the candidates stay as they were. It is tried on made-up candidates before the table is read, and
    what it raises there is reported.

    See Also
    --------
    Mutate : The other operator.
    Generation : What it is given.
    PrivGene : Takes it as `crossover`.
    GeneticSearch : Takes it as `crossover`.

    Notes
    -----
    Guarantee: that of the search, whatever the function does; docs/proofs/selection.md, Lemma 9.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> def uniform(first, second, generation):
    ...     swap = generation.random.random(first.shape) < 0.5
    ...     return np.where(swap, second, first), np.where(swap, first, second)
    >>> pf.PrivGene(moves="genes", parents=10, crossover=uniform).parents
    10
    """

    def __init__(self) -> None: ...

    def __call__(self, first: Floats, second: Floats, generation: Generation) -> tuple[Floats, Floats]:
        """Recombine pairs of parents.

        Parameters
        ----------
        first : ndarray of shape (n_pairs, n_parameters)
            The first parent of every pair.
        second : ndarray of shape (n_pairs, n_parameters)
            The second parent of every pair; the same as the first where one parent is selected.
        generation : Generation
            Public facts and random numbers.

        Returns
        -------
        tuple of two ndarrays of shape (n_pairs, n_parameters)
            Two children of every pair.
        """
        ...


class Mutate(Protocol):
    """A mutation of the user's own: an array of candidates in, one of the same shape out.

    Any function of this form is one; nothing has to be inherited. It never sees a row, so that whatever it does keeps
    the privacy of the search: what it returns is clipped to the search box, NaN counts as the entry that was given, and
    where it fails the candidates stay as they were. It is tried on made-up candidates before the table is read, and
    what it raises there is reported.

    See Also
    --------
    Crossover : The other operator.
    Generation : What it is given.
    PrivGene : Takes it as `mutate`.
    GeneticSearch : Takes it as `mutate`.

    Notes
    -----
    Guarantee: that of the search, whatever the function does; docs/proofs/selection.md, Lemma 9.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> def everywhere(children, generation):
    ...     return children + generation.step * generation.random.choice([-1, 1], children.shape)
    >>> pf.PrivGene(moves="genes", mutate=everywhere).moves
    'genes'
    """

    def __init__(self) -> None: ...

    def __call__(self, children: Floats, generation: Generation) -> Floats:
        """Change candidates.

        Parameters
        ----------
        children : ndarray of shape (n_candidates, n_parameters)
            Candidates after crossover, one a line.
        generation : Generation
            Public facts and random numbers.

        Returns
        -------
        ndarray of shape (n_candidates, n_parameters)
            The candidates of the next round.
        """
        ...


@dataclass(frozen=True)
class Setting:
    """Where candidates are bred: the search box, how often this was done before, and how far mutations go now."""

    low: Floats
    high: Floats
    number: int
    step: float

    def generation(self, random: PublicGenerator) -> Generation:
        """The same for a user's function, which gets arrays of its own."""
        return Generation(self.number, self.step * (self.high - self.low), self.low.copy(), self.high.copy(), random)


def crossed(crossover: Crossover, first: Floats, second: Floats, setting: Setting, source: Source) -> Floats:
    """The children of every pair, first all first ones, then all second ones; the parents where the function fails."""
    generation = setting.generation(fresh_generator(source))
    found = _kept(lambda: crossover(first.copy(), second.copy(), generation), np.stack([first, second]), setting)
    return np.concatenate(list(found))


def mutated(mutate: Mutate, children: Floats, setting: Setting, source: Source) -> Floats:
    """The children after mutation; as they were where the function fails."""
    generation = setting.generation(fresh_generator(source))
    return _kept(lambda: mutate(children.copy(), generation), children, setting)


def fresh_generator(source: Source) -> PublicGenerator:
    """A generator for one call, seeded by the random integers of the release, which hide nothing."""
    words = source.below(np.full(SEED_WORDS, 1 << WORD_BITS, dtype=np.int64)).tolist()
    return seeded_generator(sum(word << (WORD_BITS * place) for place, word in enumerate(words)))


def _kept(call: Callable[[], object], given: Floats, setting: Setting) -> Floats:
    """What a function returned, within the box; what it was given wherever that is no number, or no answer at all."""
    found = attempted(lambda: _shaped(call(), given))
    if found is None:
        return given
    return np.clip(np.where(np.isnan(found), given, found), setting.low, setting.high)


def _shaped(found: object, given: Floats) -> Floats:
    numbers = real_numbers(found)
    if numbers.shape != given.shape:
        raise ValueError(
            f"Numbers of shape {numbers.shape} were returned; those of candidates of shape {given.shape} were expected."
        )
    return numbers


# -- a trial ---------------------------------------------------------------------------------------


def try_operators(crossover: Crossover | None, mutate: Mutate | None, candidates: int, setting: Setting) -> None:
    """Refuse a crossover or a mutation that fails on made-up candidates, before anything is read.

    What it raises there may be shown as it is: nothing private is in it.
    """
    random = seeded_generator(TRIAL_SEED)
    low, high = setting.low, setting.high
    made_up = np.clip(low + (high - low) * random.random((2, candidates, len(low))), low, high)
    if crossover is not None:
        pairs = made_up[:, : -(-candidates // 2)]
        _try("crossover", lambda: crossover(pairs[0].copy(), pairs[1].copy(), setting.generation(random)), pairs)
    if mutate is not None:
        _try("mutation", lambda: mutate(made_up[0].copy(), setting.generation(random)), made_up[0])


def _try(name: str, call: Callable[[], object], given: Floats) -> None:
    found, failure = tried(lambda: _shaped(call(), given))
    if found is None:
        words, _ = tried(lambda: str(failure))
        told = f"failed on made-up candidates, with {type(failure).__name__}: {words}"
    elif np.isnan(found).any():
        told = "returned NaN for made-up candidates"
    else:
        return
    takes = (
        "two arrays of candidates and returns two" if name == "crossover" else "an array of candidates and returns one"
    )
    raise PrivacyError(
        f"The {name} {told}. It takes {takes} of the same shape, one candidate a line; a pf.Generation comes last. "
        "Correct it, and try it on candidates of your own making. Nothing was charged."
    ) from failure
