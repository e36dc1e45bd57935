"""Tests which settings of a repository take effect at each trust level, with repositories that try everything."""
