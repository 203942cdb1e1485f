"""The way to run commands in this process that privfit's own tests have."""

from tests.cli.conftest import run

__all__ = ["run"]
