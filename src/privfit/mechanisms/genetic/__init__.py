"""Genetic searches: candidates are scored on the rows, some are selected privately, and new ones are bred from them.

Read in this order:

- breeding.py: crossover and mutation, which never see the data.
- selections.py: private choices one after the other, by which rule, and what each may spend.
- scores.py: integer scores of candidates, and how far one row can change a difference of two.
- rounds.py: the rounds of a search, which all of the following share but moves.py.
- search.py: GeneticMechanism, for any fitting function.
- privgene.py: PrivGene, for two classes; moves.py moves all levels of a column at once, population.py and weights.py
  are the paper's own algorithm.
- centres.py: GeneticCentres, for k-means.
"""
