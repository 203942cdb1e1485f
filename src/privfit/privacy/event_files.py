"""Events as earlier versions wrote them, in ledgers and models: kinds of noise by name, with lists beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privfit.privacy.errors import PrivacyError
from privfit.privacy.parts import Additive, DiscreteGaussian, KNorm, Laplace, Part, RoundedGaussian, Selection

RULES = ("permute-and-flip", "exponential")
ELSEWHERE = "unknown"
"""The noise of releases that were made elsewhere."""
FIELDS = ("mechanism", "epsilon", "delta", "rho", "adjacency", "rows_per_person")
NOISE = ("noise", "sensitivity", "scale", "unit", "n_values", "parts", "scales", "widths")
KINDS: dict[str, type[Additive]] = {"laplace": Laplace, "gaussian": DiscreteGaussian, "normal": RoundedGaussian}
NORMS = {"linf": "linf", "l2": "l2", "octahedra": "blocks"}


def parts_of_version_two(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event, with typed parts made of its texts and lists.

    Kinds were joined by "+", one for each part with a scale of its own; parts were sizes.
    """
    noise, n_values = plain["noise"], plain.get("n_values", 0)
    if not isinstance(noise, str):
        raise _refused(f"noise of type {type(noise).__name__}; it is a text")
    if not plain.keys() <= {*FIELDS, *NOISE}:
        raise _refused(f"fields that no version had: {sorted(plain.keys() - {*FIELDS, *NOISE})}")
    sizes = plain.get("parts") or ([n_values] if n_values else [])
    if (
        not _are_integers([n_values, *sizes, plain.get("sensitivity", 0)])
        or min(sizes, default=1) < 1
        or sum(sizes) != n_values
    ):
        raise _refused(
            f"n_values={n_values!r}, parts={sizes!r} and sensitivity={plain.get('sensitivity')!r}; they are integers, "
            "and parts are positive and add up to all values"
        )
    found = {name: plain[name] for name in FIELDS if name in plain}
    facts = Laplace(**{"size": 1} | {name: plain[name] for name in ("scale", "sensitivity", "unit") if name in plain})
    if noise == ELSEWHERE:
        return {**found, "elsewhere": True}
    if not n_values:
        return found
    if noise in RULES:
        return {**found, "parts": (Selection(rule=noise, count=n_values),)}  # type: ignore[arg-type]
    return {**found, "parts": tuple(_parts(plain, noise.split("+"), sizes, facts))}


def _parts(plain: Mapping[str, Any], kinds: Sequence[str], sizes: Sequence[int], facts: Laplace) -> list[Part]:
    """A part for each kind; with one kind and one scale for all, one part with blocks of these sizes."""
    scales, widths = plain.get("scales") or (), plain.get("widths") or [()] * len(kinds)
    if not scales and len(kinds) == 1:
        blocks = sizes if kinds[0] == "linf" and len(sizes) > 1 else widths[0]
        return [_part(kinds[0], sum(sizes), facts.scale, facts, tuple(blocks))]
    if not len(kinds) == len(sizes) == len(scales) == len(widths):
        raise _refused(
            f"scales={scales!r}, widths={widths!r} and {len(kinds)} kinds of noise for {len(sizes)} parts; each part "
            "has one of each"
        )
    return [
        _part(kind, size, scale, facts, tuple(blocks), first=place == 0)
        for place, (kind, size, scale, blocks) in enumerate(zip(kinds, sizes, scales, widths, strict=True))
    ]


def _part(kind: str, size: int, scale: float, facts: Laplace, blocks: tuple[int, ...], first: bool = True) -> Additive:
    given: dict[str, Any] = {"size": size, "scale": scale, "unit": facts.unit}
    given["sensitivity"] = facts.sensitivity if first else 0
    if kind in NORMS:
        return KNorm(norm=NORMS[kind], blocks=blocks, **given)  # type: ignore[arg-type]
    if kind not in KINDS or blocks:
        raise _refused(f"noise {kind!r} with blocks {blocks!r}; only some noise has blocks")
    return KINDS[kind](**given)


def _are_integers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def _refused(given: str) -> PrivacyError:
    return PrivacyError(
        f"An event of an earlier version was given {given}. It was not written so: take the file from a copy that "
        "nobody has changed."
    )
