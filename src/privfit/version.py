"""The version of privfit."""

VERSION = "0.1.0"
