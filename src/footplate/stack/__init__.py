"""Runs PostgreSQL, Redis and Temporal as child processes on this machine, without containers."""

from footplate.stack.launcher import Stack, StackSettings
from footplate.stack.services.postgres import Postgres
from footplate.stack.services.python_service import PythonService
from footplate.stack.services.redis import Redis
from footplate.stack.services.service import Service, ServiceFailed
from footplate.stack.services.temporal import Temporal

__all__ = ["Postgres", "PythonService", "Redis", "Service", "ServiceFailed", "Stack", "StackSettings", "Temporal"]
