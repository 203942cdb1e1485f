"""
A Spark job
===========

The table is in a cluster, and too large to bring to one machine. The fit sends what is public to the workers, each
partition sends one small array of integers back, and noise is drawn in the process that you run. Rows stay where they
are.

This page runs where Java is installed. On a cluster of your own, install privfit on the workers too, and name their
Python in ``PYSPARK_PYTHON``: without it, Spark starts whatever ``python3`` is on the path.
"""

from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import privfit as pf

folder = TemporaryDirectory()
stays, schema = pf.datasets.load_patients("cost")
stays.write_parquet(f"{folder.name}/stays.parquet")

# %%
# The frame, as your job has it
# -----------------------------
#
# Filters and joins are Spark's own business; the plan of the frame is what is read.

session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
frame = session.read.parquet(f"{folder.name}/stays.parquet").filter(F.col("age") >= 40).repartition(4)
print(frame.rdd.getNumPartitions())

# %%
# The fit
# -------
#
# The ledger lives with the process that draws noise, and not with the workers. A job that is started twice is charged
# twice, for it would release twice.

ledger = pf.Ledger(epsilon=1.0)
schema = pf.Schema(schema.features, schema.target)
model = pf.Ridge(epsilon=0.5, schema=schema, mechanism="functional", ledger=ledger).fit(frame)
print(model.report_)

# %%
# Workers that are lost and tasks that run twice change no bit: sums are integers, and each partition answers once.
#
# Predictions are made where the rows are, too:

print(model.predict(frame)[:3].round())
session.stop()
folder.cleanup()

# %%
# :doc:`/engines` has the other sources, and what clusters may lose.
