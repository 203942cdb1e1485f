"""Samplers: the only randomness in privfit. All work on integers, from exact laws.

Read in this order:

1. `sources.py`: `Sampler`, what noise is asked of; `SecureNoise` (OpenDP and the operating system's entropy) and
   `SeededNoise`, which is not private.
2. `norms.py`: K-norm noise in the L-infinity norm and in a block norm; which noise fits 64 bits and its lattice.
3. `decimals.py`: real-valued noise, rounded: K-norm noise in the L2 norm, and normal noise.
4. `selection.py`: permute-and-flip and the exponential mechanism; random bits for every row.
5. `patterns.py`: the exponential mechanism over exponentially many candidates.
6. `threshold.py`: cells that noise lifts to a threshold, without a list of all cells.
"""
