"""Each claim of the product is one module here and one command: `just prove core-1`.

A module `core_1.py` has a docstring whose first line is the claim, and `async def prove(quick: bool) -> Figure`.
Clusters come from `bench.prove.cluster.open_cluster`, so that a group that is run together shares one stack.
"""
