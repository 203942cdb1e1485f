"""PrivGene (Zhang et al., SIGMOD 2013): Figures 2 to 7."""
