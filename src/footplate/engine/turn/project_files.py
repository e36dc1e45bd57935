"""Finds and reads the files of a session's projects that a message names by path.

A path is resolved inside the environment, as a program of the agent would resolve it, when the message becomes part of
the conversation. So the model gets the file as it is in the session's tree then.
"""

import posixpath
from dataclasses import dataclass
from typing import Final

from footplate.domain.files import media_types
from footplate.domain.files.attachments import Attachment, AttachmentFailed, AttachmentRefused
from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.domain.ports.engine import OpenEnvironment
from footplate.domain.ports.harness import MAX_READ_BYTES, Gate

_SIZE_SCRIPT: Final = '[ -f "$1" ] && [ -r "$1" ] && wc -c < "$1"'


@dataclass(frozen=True, slots=True)
class ProjectFile:
    path: str
    """The absolute path inside the environment, as it was named."""
    real_path: str
    """The path without links."""
    size: int


class ProjectFiles:
    def __init__(self, environment: OpenEnvironment, gate: Gate) -> None:
        self._environment = environment
        self._gate = gate

    async def find_file(self, source: JsonObject) -> ProjectFile:
        """Raises `AttachmentFailed` if the file does not exist or is outside its project."""
        await self._environment.ensure_open()
        name, root = str(source.get("path")), self._find_root(source)
        path = posixpath.join(root, name)
        real_root, real_path = await self._environment.resolve_paths([root, path])
        if real_root is None or real_path is None or not real_path.startswith(f"{real_root}/"):
            raise AttachmentFailed(
                f"The path {name!r} leads out of its project.",
                help_text="Name a file inside the project. A symbolic link must not lead out of it either.",
            )
        counted = await self._environment.run(["sh", "-c", _SIZE_SCRIPT, "sh", real_path])
        if counted.exit_code != 0:
            raise AttachmentFailed(
                f"The project has no readable file {name!r}.",
                help_text="Paths are relative to the root of the session's project. Directories cannot be attached.",
            )
        return ProjectFile(path, real_path, int(counted.stdout))

    async def load_file(self, file: ProjectFile) -> Attachment:
        """Read a file for the model, if the session's rules allow the agent to read it. Raises `AttachmentRefused`."""
        decision = await self._gate.decide("read", {"file_path": file.path})
        if decision.outcome is not PermissionOutcome.ALLOW:
            raise AttachmentRefused(
                f"The session's rules do not allow {file.path} to be read without approval: {decision.reason}",
                help_text="Use `deliver: file`. The agent then requests approval when it reads the file.",
            )
        if file.size > MAX_READ_BYTES:
            raise AttachmentRefused(
                f"{file.path} has {file.size} bytes. The limit for a file of a project is {MAX_READ_BYTES} bytes.",
                help_text="Use `deliver: file`.",
            )
        try:
            data = await self._environment.read(file.real_path)
        except OSError as error:
            raise AttachmentFailed(f"{file.path} could not be read: {error.strerror or error}.") from error
        return Attachment(data, media_types.find_type(file.path, data), posixpath.basename(file.path))

    def _find_root(self, source: JsonObject) -> str:
        project_id = source.get("project_id")
        if project_id is None:
            return self._environment.root
        path = self._environment.inside_paths.get(str(project_id))
        if path is None:
            raise AttachmentFailed(
                f"The session does not work on the project {project_id!r}.",
                help_text="Use the ID of one of its projects, or omit `project_id` for the first one.",
            )
        return path
