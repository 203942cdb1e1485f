"""Noise sources for attacks: one that writes down what it was asked, one that answers what it is told to."""

from privfit.audit.recording import Call, RecordingNoise, ReplayingNoise

__all__ = ["Call", "RecordingNoise", "ReplayingNoise"]
