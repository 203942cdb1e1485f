"""Settings of PrivGene that mean nothing, or nothing together: refused before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NoReturn

from privfit.privacy import PrivacyError

if TYPE_CHECKING:
    from privfit.mechanisms.genetic.privgene import PrivGene

Automatic = Literal["auto"]
Start = Literal["auto", "scattered"]

WORDS = {
    "moves": ("columns", "coordinates", "genes"),
    "calibration": ("tight", "paper"),
    "start": ("auto", "scattered"),
}
NUMBERS = {
    "first_step": (0.05, 10.0),
    "last_step": (0.05, 10.0),
    "C": (1e-3, 1e9),
    "steepest": (0.05, 1.0),
    "box": (0.05, 1000.0),
}
OF_GENES = {"elitism": True, "crossover": None, "mutate": None, "box": "auto", "start": "auto", "parents": 1}
"""Settings for moves="genes" alone, and what they are otherwise."""


def check_settings(gene: PrivGene) -> None:
    """Refuse settings of PrivGene one by one, then together."""
    for name, words in WORDS.items():
        if getattr(gene, name) not in words:
            listed = f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}"
            _refuse(name, getattr(gene, name), listed, words[0])
    for name, (low, high) in NUMBERS.items():
        value = getattr(gene, name)
        if value != "auto" and not (name == "C" and value is None) and not _is_number(value, low, high):
            _refuse(name, value, f"'auto' or a number from {low:g} to {high:g}", "auto")
    many = gene.candidates
    if many not in ("all", "auto") and (isinstance(many, bool) or not hasattr(many, "__index__") or int(many) < 2):
        _refuse("candidates", many, "'all', 'auto' or an integer of at least 2", "auto")
    _check_together(gene)


def _check_together(gene: PrivGene) -> None:
    if not gene.bred:
        for name, usual in OF_GENES.items():
            if getattr(gene, name) != usual:
                raise PrivacyError(
                    f"{name}={_told(getattr(gene, name))} was given with moves={gene.moves!r}, which move one parent. "
                    "Use moves='genes' for it."
                )
    if gene.candidates == "all" and (gene.selection == "permute-and-flip" or gene.moves == "coordinates" or gene.bred):
        raise PrivacyError(
            "candidates='all' was given with permute-and-flip or single coordinates; all patterns of columns are "
            "chosen from by the exponential mechanism. "
            "Use selection='enhanced' and moves='columns', or a number of candidates."
        )


def _is_number(value: object, low: float, high: float) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and low <= value <= high


def _refuse(name: str, value: object, allowed: str, usual: str) -> NoReturn:
    raise PrivacyError(f"{name}={value!r} was given; it is {allowed}. Use {usual!r} if in doubt.")


def _told(value: object) -> str:
    return type(value).__name__ if callable(value) else repr(value)
