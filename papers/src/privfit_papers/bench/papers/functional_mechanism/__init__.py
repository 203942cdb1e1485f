"""The functional mechanism (Zhang et al., VLDB 2012): Figures 2 to 9."""
