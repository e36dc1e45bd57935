"""Tests of live streaming on a real Redis."""
