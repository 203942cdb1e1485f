"""The five papers that privfit grew out of, reproduced, and measurements against peers.

`bench/` has tables, methods and measurements, and `bench/papers/` the grids, figures and claims of each paper;
`report/` draws what was measured; `cli/` has `privfit reproduce` and `privfit bench`, which privfit finds by their
entry points.
"""
