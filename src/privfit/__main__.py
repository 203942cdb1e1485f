"""`python -m privfit` is the command line."""

from privfit.cli import main

main()
