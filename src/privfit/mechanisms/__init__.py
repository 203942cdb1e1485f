"""Mechanisms: from rows to one release, with noise chosen from public facts alone."""

from privfit.mechanisms.functional import FunctionalMechanism, LinearFit, Objective
from privfit.mechanisms.release import Release

__all__ = ["FunctionalMechanism", "LinearFit", "Objective", "Release"]
