"""The ledger: a budget in an SQLite file, or a database, that every process shares and none can overdraw.

Read in this order:

1. `ledger.py`: `Ledger`, with `check` and `charge`; the ledger of the process.
2. `chain.py`: one use of a ledger: open, check that it is the same and goes on from what was seen, append; the chain of
   hashes, and the state that a charge reads and writes.
3. `place.py`: what a file or a database fills in: a `Place` and its `Records`. `entries.py`: what entries say.
4. `file.py`: a ledger in a file: its rows, also those of version 1, and its lock. `postgresql.py`: one in a database.
5. `reading.py`: what a ledger shows: spent, remaining, entries. `check.py`: the whole of it verified.
6. `making.py`: a new ledger. `null.py`: no ledger.

docs/proofs/composition.md has the guarantee; docs/sharp-edges.md what a file system may take away from it.
"""
