"""Runs claims (`just prove core-2`), stores their results, and writes docs/evidence.md.

A claim is a module in `bench/claims`: the first line of its docstring states it, and `async def prove(quick: bool) ->
Figure` decides it. Clusters come from `bench.support.cluster.open_cluster`, so that samples run together share a stack.
"""
