"""The parts of `core-7`: a loader that multiplies a session, and the operations whose times are compared."""
