"""Cells that noise alone lifts to a threshold, found without noising all of them.

Every cell of a table is noised by itself, and nearly all are empty. Which of them pass is an even choice of as many
cells as a binomial number says. Both are drawn exactly, for any number of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.samplers.norms import Source
from privfit.privacy.samplers.sources import Sampler

Integers = NDArray[np.int64]

DIGITS = 120
"""Decimal digits at first: uniform numbers of 240 bits have 72, and more of both are taken where they do not decide."""
GUARD = 40
"""Last digits that are not trusted: far more than sums of as many terms as there are cells can lose."""
WORDS, WORD_BITS = 4, 60
"""Words of a uniform number taken at a time, and their bits, which fit 64-bit limits."""
PIECE = 1 << 18
"""Values noised in one call: OpenDP takes Python lists, of which ten million would fill the memory."""
_MOST_WORD = 1 << 62
"""The largest limit of a uniform number that a source draws at once."""
MOST_COUNT = (1 << 63) - 1
"""Where noise on 64-bit counts is cut, so that cells with rows and without end at the same number."""


def lifted(n_cells: int, threshold: int, scale: float, noise: Sampler) -> dict[int, int]:
    """Every cell that noise alone lifts to the threshold or above, by its number, and its value: as if all cells,
    empty, had been noised and compared.

    Noise is at least `threshold` if a trial of probability exp(-threshold / scale) succeeds and a second number k,
    noise itself, is not negative; it is threshold + k then.

    Guarantee: exact law; docs/proofs/histograms.md, Lemma 2.
    """
    cells = distinct(binomial(n_cells, threshold, scale, noise), n_cells, noise)
    more = laplace(noise, np.zeros(len(cells), dtype=np.int64), scale).tolist()
    return {cell: min(threshold + above, MOST_COUNT) for cell, above in zip(cells, more, strict=True) if above >= 0}


def passing_held(counts: Sequence[int], most: int, threshold: int, scale: float, noise: Sampler) -> dict[int, int]:
    """The places of the counts, each of at least 1, that noise of their own brings to the threshold, and their noisy
    values. How many counts there are does not show in what is drawn, if they add up to `most` at most.

    Counts up to half of the threshold are many, and few of them pass: those whose noise is large enough for any of them
    to pass are drawn at once, as of `most` empty cells. The others are noised one by one, as many as there can be.

    Guarantee: exact law; docs/proofs/open-levels.md, Lemma 2.
    """
    half = threshold // 2
    large = [place for place, count in enumerate(counts) if count > half]
    small = [place for place, count in enumerate(counts) if count <= half]
    values = np.zeros(max(most // (half + 1), len(large)), dtype=np.int64)
    values[: len(large)] = [counts[place] for place in large]
    passed = dict(zip(large, laplace(noise, values, scale).tolist(), strict=False))
    lucky = lifted(max(most, len(small), 1), threshold - half, scale, noise)
    passed |= {small[cell]: counts[small[cell]] + own for cell, own in lucky.items() if cell < len(small)}
    return {place: value for place, value in sorted(passed.items()) if value >= threshold}


def laplace(noise: Sampler, values: Integers, scale: float) -> Integers:
    """The values with noise, some at a time: lists of ten million would fill the memory."""
    parts = [noise.laplace(values[start : start + PIECE], scale) for start in range(0, len(values), PIECE)]
    return np.concatenate(parts) if parts else values


# -- how many --------------------------------------------------------------------------------------


def binomial(trials: int, threshold: int, scale: float, source: Source) -> int:
    """How many of `trials` trials of probability exp(-threshold / scale) succeed.

    A uniform number, known to more and more bits, is compared with sums of probabilities, known to more and more
    digits, until no bit or digit that is left out could change the answer.

    Guarantee: exact law; docs/proofs/histograms.md, Lemma 2.
    """
    drawn, bits, digits = 0, 0, DIGITS
    while True:
        for word in source.below(np.full(WORDS, 1 << WORD_BITS, dtype=np.int64)).tolist():
            drawn, bits = drawn << WORD_BITS | word, bits + WORD_BITS
        found = inverted(trials, threshold, scale, drawn, bits, digits)
        if found is not None:
            return found
        digits *= 2


def inverted(trials: int, threshold: int, scale: float, drawn: int, bits: int, digits: int) -> int | None:
    """The number of successes at which the sum of probabilities passes every uniform number from drawn / 2^bits to
    (drawn + 1) / 2^bits; None if that is too close to call.
    """
    with localcontext(Context(prec=digits + len(str(trials)), Emin=MIN_EMIN, Emax=MAX_EMAX)):
        low, high = Decimal(drawn) / (1 << bits), Decimal(drawn + 1) / (1 << bits)
        unsure = Decimal(10) ** (GUARD - digits)
        success = (-Decimal(threshold) / Decimal(scale)).exp()
        odds = success / (1 - success)
        probability = (trials * (1 - success).ln()).exp()
        total = probability
        for count in range(trials):
            if low < total + unsure:
                return count if high <= total - unsure else None
            probability = probability * (trials - count) / (count + 1) * odds
            total += probability
        return trials


# -- which -----------------------------------------------------------------------------------------


def distinct(count: int, n_cells: int, source: Source) -> list[int]:
    """So many different cells, all choices equally likely, rising.

    Lists all cells only if more than half of them are wanted.
    """
    most = 2 * count > n_cells
    wanted, found = n_cells - count if most else count, set[int]()
    while len(found) < wanted:
        found.update(below(wanted - len(found), n_cells, source))
    return [cell for cell in range(n_cells) if cell not in found] if most else sorted(found)


def below(count: int, limit: int, source: Source) -> list[int]:
    """Independent integers from 0 to limit - 1, all equally likely, for limits of any size."""
    if limit <= _MOST_WORD:
        return [int(number) for number in source.below(np.full(count, limit, dtype=np.int64)).tolist()]
    bits = (limit - 1).bit_length()
    words = -(-bits // WORD_BITS)
    found: list[int] = []
    while len(found) < count:
        missing = count - len(found)
        drawn = source.below(np.full(missing * words, 1 << WORD_BITS, dtype=np.int64)).reshape(missing, words)
        whole = np.zeros(missing, dtype=object)
        for place in range(words):
            whole = (whole << WORD_BITS) | drawn[:, place].astype(object)
        tried = [int(number) >> (words * WORD_BITS - bits) for number in whole.tolist()]
        found += [number for number in tried if number < limit]
    return found
