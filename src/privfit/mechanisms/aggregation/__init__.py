"""Sample and aggregate: any function of a table, run on many small blocks of rows and averaged with noise.

Read in this order:

- block_plan.py: what is decided before a row is read, how rows are assigned to blocks, and how answers are put
  together: ranges given, or chosen privately from answers or from inputs.
- sample_aggregate.py: SampleAndAggregate, for a function of the user's own: how many blocks there are, and the noise on
  the mean of their answers.
- trials.py: a function is tried on rows made up from the schema, before anything is charged.
- aged.py: the number of blocks, and the epsilon for an accuracy, from public rows.
- block_fits.py: AggregatedWeights and AggregatedCentres, the same for classifiers and for k-means.
"""
