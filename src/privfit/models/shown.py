"""What a notebook shows of a model: what was released and what it promises, instead of scikit-learn's diagram."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from sklearn import get_config
from sklearn.base import BaseEstimator

from privfit.models.release import estimates_of
from privfit.report.notebook import fragment, paragraph, table

if TYPE_CHECKING:
    from privfit.models.report import Report


MOST_CHARACTERS = 200
"""Of the value of a parameter: a table given as one is cut. About two lines of a notebook. Chosen, not measured."""


class ShownModel(BaseEstimator):  # type: ignore[misc]
    """A model that notebooks show by its report and coefficients.

    scikit-learn's own picture of one estimator lists parameters and brings a script. A pipeline around a model keeps
    it, and `sklearn.set_config(display="text")` asks for plain text here too.
    """

    report_: Report

    def _html_repr(self) -> str:
        """The fragment, under the name that newer versions of scikit-learn ask for."""
        name = type(self).__name__
        if not hasattr(self, "report_"):
            return fragment(paragraph(f"{name}, not fitted", strong=True), _parameters(self))
        warning = () if self.report_.private else (paragraph("This model is NOT private.", strong=True),)
        parts = (paragraph(f"{name}, fitted", strong=True), *warning, _estimates(self))
        return fragment(*parts, self.report_._repr_html_())

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        return bundle | ({"text/html": self._html_repr()} if get_config()["display"] == "diagram" else {})


def _parameters(model: ShownModel) -> str:
    """The parameters that are not at their defaults."""
    defaults = {name: one.default for name, one in inspect.signature(type(model)).parameters.items()}
    given = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    lines = [(name, _short(text)) for name, text in given.items() if text != repr(defaults.get(name))]
    return table("Parameters that are not at their defaults", ("parameter", "value"), lines)


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} ..."


def _estimates(model: ShownModel) -> str:
    """Coefficients or centres, where there are few enough to read."""
    lines = estimates_of(model)
    if not lines:
        return ""
    intervals = len(lines[0]) > 2
    return table("Coefficients", ("column", "value", *(("90% from", "to") if intervals else ())), lines)
