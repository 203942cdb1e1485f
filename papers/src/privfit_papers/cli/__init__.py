"""`privfit reproduce` and `privfit bench`: one file per command, each named by an entry point in pyproject.toml."""
