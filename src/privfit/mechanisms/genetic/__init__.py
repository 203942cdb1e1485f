"""Genetic searches: candidates are scored on the rows, some are selected privately, and new ones are bred from them.

Read in this order:

- operators.py: crossover and mutation of the user's own, guarded; breeding.py: those of the paper. None sees a row.
- selections.py: private choices one after the other, by which rule, and what each may spend.
- scores.py: integer scores of candidates, and how far one row can change a difference of two.
- rounds.py: the rounds of a search, which all of the following share but moves.py.
- search.py: GeneticMechanism, for any fitting function.
- privgene.py: PrivGene, for classes, and settings.py, what it refuses; moves.py moves all levels of a column at once,
  by the steps of schedule.py; population.py and weights.py are the paper's own algorithm.
- centres.py: GeneticCentres, for k-means.
"""
