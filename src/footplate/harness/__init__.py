"""Harnesses run the turns of an agent. Built-in and third-party harnesses are found by their Python entry points."""
