"""Drawings of results: what comes in is plain values, and nothing here sees a row."""
