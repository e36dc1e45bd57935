"""Tests of the engine on a real Temporal, PostgreSQL and Redis, with a harness that each test scripts."""
