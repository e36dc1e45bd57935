"""Tests of the HTTP API on in-memory fakes of its ports."""
