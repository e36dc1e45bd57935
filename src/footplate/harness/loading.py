"""Libraries that are loaded when they are first needed: one at a time, whichever thread needs them.

Two threads that load parts of the same library in different orders would wait for each other. Python finds that out and
breaks one of them off, and what it leaves behind stays broken for as long as the process lives.
"""

import asyncio
import threading
from importlib import import_module
from types import ModuleType
from typing import Final

ALONE: Final = threading.RLock()
"""Held while something is loaded."""


async def module(name: str) -> ModuleType:
    """In a thread: it may take a second, and other turns go on meanwhile."""
    return await asyncio.to_thread(_load, name)


def _load(name: str) -> ModuleType:
    with ALONE:
        return import_module(name)
