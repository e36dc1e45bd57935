"""Tests of what the operator sees."""
