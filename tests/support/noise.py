"""Noise sources for attacks: one that writes down what it was asked, one that answers what it is told to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Call:
    kind: str
    values: np.ndarray
    scale: float
    output: np.ndarray


class RecordingNoise:
    """Seeded noise that remembers every call."""

    private = True

    def __init__(self, seed: int = 0) -> None:
        from privfit.privacy import SeededNoise

        self._source = SeededNoise(seed)
        self._coins = SeededNoise(2026)
        self.calls: list[Call] = []

    def _answer(self, kind: str, values: np.ndarray, scale: float, *facts: object) -> np.ndarray:
        output = getattr(self._source, kind)(values, scale, *facts)
        self.calls.append(Call(kind, values.copy(), scale, output))
        return output

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._answer("laplace", values, scale)

    def linf(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._answer("linf", values, scale)

    def block_norm(self, values: np.ndarray, scale: float, widths: tuple[int, ...]) -> np.ndarray:
        return self._answer("block_norm", values, scale, widths)

    def l2(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._answer("l2", values, scale)

    def normal(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._answer("normal", values, scale)

    def select(self, scores: list[int], scale: float) -> int:
        return int(self._answer("select", np.array(scores, dtype=object), scale))

    def select_each(self, menus: list[list[int]], scale: float, rule: str) -> list[int]:
        output = self._source.select_each(menus, scale, rule)
        return self._recorded_choice(menus, scale, rule, output)

    def _recorded_choice(self, menus: list[list[int]], scale: float, rule: str, output: list[int]) -> list[int]:
        self.calls.append(
            Call(rule, np.concatenate([np.array(menu, dtype=object) for menu in menus]), scale, np.array(output))
        )
        return output

    def below(self, limits: np.ndarray) -> np.ndarray:
        """Public random bits, as for mutations: not noise, not written down, and the same in a replay."""
        return self._coins.below(limits)

    def keyed_bits(self):
        from privfit.privacy.samplers.selection import KeyedBits

        return KeyedBits(b"the same coins for both tables")

    def key(self) -> bytes:
        return b"one key for both"

    def one_in(self, count: int) -> bool:
        return self._source.one_in(count)

    def gaussian(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._answer("gaussian", values, scale)


class ReplayingNoise(RecordingNoise):
    """Answers with the noisy outputs of another run, so that a model built from noisy values alone cannot tell two
    tables apart.
    """

    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self._outputs = [call.output for call in calls]

    def _answer(self, kind: str, values: np.ndarray, scale: float, *facts: object) -> np.ndarray:
        output = self._outputs[len(self.calls)]
        self.calls.append(Call(kind, values.copy(), scale, output))
        return output if isinstance(output, int) else output.copy()

    def select_each(self, menus: list[list[int]], scale: float, rule: str) -> list[int]:
        return self._recorded_choice(menus, scale, rule, self._outputs[len(self.calls)].tolist())
