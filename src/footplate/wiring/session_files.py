"""Builds what a worker does with the files of sessions: their trees and snapshots, the setups of projects with their
cached directories, and outputs.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from footplate.domain.files.session_outputs import OutputLimits
from footplate.store.log.files.file_snapshots import SnapshotHistory
from footplate.store.resources.files import FileContents
from footplate.store.resources.project_caches import ProjectCaches
from footplate.store.resources.session_outputs import OutputRoom
from footplate.trees.outputs.collection import HostOutputDirectories
from footplate.trees.projects.directory_cache import CacheLimits, DirectoryCache
from footplate.trees.projects.included_files import IncludedFiles
from footplate.trees.projects.tree_setup import CachedTreeSetup
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.pack_consolidation import PackConsolidator
from footplate.trees.snapshots.upload import SnapshotUploader
from footplate.wiring.connections import Connections
from footplate.wiring.shared_components import create_mirrors


@asynccontextmanager
async def open_trees(connections: Connections) -> AsyncIterator[SessionTrees]:
    settings = connections.settings
    uploader = SnapshotUploader(connections.objects)
    consolidator = PackConsolidator(connections.objects, uploader, SnapshotHistory(connections.database))
    try:
        yield SessionTrees(
            settings.data_dir,
            create_mirrors(settings),
            uploader,
            consolidator,
            seconds=settings.git_seconds,
            max_home_bytes=settings.home_bytes,
            included_files=IncludedFiles(max_bytes=settings.include_bytes),
        )
    finally:
        await consolidator.aclose()


def create_tree_setup(connections: Connections) -> CachedTreeSetup:
    settings = connections.settings
    limits = CacheLimits(
        entry_bytes=settings.cache_bytes,
        project_bytes=settings.cache_project_bytes,
        host_bytes=settings.cache_host_bytes,
        unused_seconds=settings.retention_caches.total_seconds(),
    )
    cache = DirectoryCache(settings.data_dir, connections.objects, ProjectCaches(connections.database), limits)
    return CachedTreeSetup(settings.data_dir, cache, seconds=settings.cache_seconds)


def create_output_directories(connections: Connections) -> HostOutputDirectories:
    settings = connections.settings
    limits = OutputLimits(
        max_files=settings.output_files, max_bytes=settings.output_bytes, max_file_bytes=settings.file_bytes
    )
    files = FileContents(connections.database, connections.objects)
    room = OutputRoom(connections.database, connections.limits)
    return HostOutputDirectories(settings.data_dir, files, limits, room.find_room)
