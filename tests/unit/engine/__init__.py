"""Tests of the engine that need no server."""
