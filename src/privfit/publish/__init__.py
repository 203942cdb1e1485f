"""Publishing: a weighted or synthetic table in place of a private one."""

from __future__ import annotations

from privfit.publish.publisher import WEIGHT, Publisher

__all__ = ["WEIGHT", "Publisher"]
