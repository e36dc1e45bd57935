"""Imports a library when it is first needed. A lock allows only one such import at a time in the process.

Two threads that import parts of the same library in different orders can deadlock. Python detects the deadlock and
aborts one import. The library then stays half-imported until the process ends.
"""

import asyncio
import threading
from importlib import import_module
from types import ModuleType
from typing import Final

IMPORT_LOCK: Final = threading.RLock()
"""Held during every lazy import."""


async def import_in_thread(name: str) -> ModuleType:
    """Imports the module in a thread. This may take a second, and other turns must not wait for it."""
    return await asyncio.to_thread(_import_locked, name)


def _import_locked(name: str) -> ModuleType:
    with IMPORT_LOCK:
        return import_module(name)
