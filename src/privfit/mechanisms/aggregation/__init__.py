"""Sample and aggregate: any function of a table, run on many small blocks of rows and averaged with noise.

Read in this order:

- sample_aggregate.py: SampleAndAggregate, for a function of the user's own: how many blocks there are, how rows are
  dealt to them, and the noise on the mean of their answers, with ranges given or chosen privately.
- trials.py: a function is tried on rows made up from the schema, before anything is charged.
- block_fits.py: AggregatedWeights and AggregatedCentres, the same for classifiers and for k-means.
"""
