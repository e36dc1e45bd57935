"""Harnesses, which decide the next action of a turn. Built-in and third-party harnesses are found by entry point."""
