"""Copies the configured object store into a directory and back: the commands `footplate objects`."""

import asyncio
from pathlib import Path

from footplate.config import Settings
from footplate.store.object_store import Objects
from footplate.store.retention.object_backup import CopyReport, copy_objects
from footplate.wiring.shared_components import open_objects


async def backup_objects(settings: Settings, directory: Path) -> CopyReport:
    """Creates the directory if it does not exist."""
    source = await open_objects(settings)
    await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True, mode=0o700)
    return await copy_objects(source, _open_directory(settings, directory))


async def restore_objects(settings: Settings, directory: Path) -> CopyReport:
    return await copy_objects(_open_directory(settings, directory), await open_objects(settings))


def _open_directory(settings: Settings, directory: Path) -> Objects:
    return Objects.open(directory.absolute().as_uri(), settings.data_dir)
