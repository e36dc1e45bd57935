"""Runs PostgreSQL, Redis and Temporal as child processes on this machine, without containers."""

from footplate.stack.launcher import Stack, StackSettings
from footplate.stack.part import Service, ServiceFailed
from footplate.stack.postgres import Postgres
from footplate.stack.program import PythonService
from footplate.stack.redis import Redis
from footplate.stack.temporal import Temporal

__all__ = ["Service", "ServiceFailed", "Postgres", "PythonService", "Redis", "Stack", "StackSettings", "Temporal"]
