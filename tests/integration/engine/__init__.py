"""The engine on a real Temporal, PostgreSQL and Redis, with a harness that a test writes."""
