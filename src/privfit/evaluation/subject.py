"""What is evaluated: which columns are computed of each row, what is asked about them, and which figures follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privfit.evaluation.cells import Estimate
from privfit.evaluation.predictor import Predictor
from privfit.mechanisms.base import AnyMechanism
from privfit.mechanisms.summaries.questions import Question, Summary, SummaryProblem
from privfit.schema import Column
from privfit.summaries.release import Answer
from privfit.tables import Batch

Asked = tuple[tuple[Question, int], ...]


@dataclass(frozen=True)
class Found:
    """Figures by their names; curves and tables; and a confusion matrix for any threshold, where there is one."""

    figures: Mapping[str, Estimate]
    curves: Mapping[str, Any] = field(default_factory=dict)
    confusion_at: Callable[[float], Any] | None = None


class Subject(ABC):
    """A kind of model, with the figures that say how good it is."""

    predictor: Predictor

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The figures and curves that it has: from public facts alone."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """What is computed of each row."""

    @abstractmethod
    def compute(self, batch: Batch) -> Batch:
        """These columns for some rows; each depends on its row alone."""

    def questions(self) -> Asked:
        """What is asked of each column, with its weight in the price; for a summary."""
        return ()

    @property
    def mechanism(self) -> AnyMechanism:
        """What releases: a summary of the columns."""
        return Summary()

    @property
    def problem(self) -> Any:
        """What it is asked."""
        questions, weights = zip(*self.questions(), strict=True)
        return SummaryProblem(questions, tuple(map(Fraction, weights)))

    @abstractmethod
    def found(self, answer: Answer) -> Found:
        """The figures: functions of what was released and of public facts."""
