"""Figures from results. Sees numbers that were measured, never rows."""

from privfit_papers.report.accuracy import accuracy_figure

__all__ = ["accuracy_figure"]
