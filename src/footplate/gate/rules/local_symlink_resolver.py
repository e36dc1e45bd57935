"""Resolves symbolic links on the local file system, for the evaluation of path rules."""

import os


class LocalLinkResolver:
    def resolve(self, path: str) -> str | None:
        try:
            return os.path.realpath(path)
        except (OSError, ValueError):
            return None
