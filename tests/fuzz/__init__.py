"""Hostile input, drawn from bytes: the same targets for coverage-guided fuzzing and for the tests.

Read `source.py` (bytes become choices), `rules.py` (what every target demands), then a target.
"""
