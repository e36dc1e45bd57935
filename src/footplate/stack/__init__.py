"""Runs PostgreSQL, Redis and Temporal as child processes on this machine, without containers."""

from footplate.stack.launcher import Stack, StackSettings
from footplate.stack.part import Part, PartFailed
from footplate.stack.postgres import Postgres
from footplate.stack.program import Program
from footplate.stack.redis import Redis
from footplate.stack.temporal import Temporal

__all__ = ["Part", "PartFailed", "Postgres", "Program", "Redis", "Stack", "StackSettings", "Temporal"]
