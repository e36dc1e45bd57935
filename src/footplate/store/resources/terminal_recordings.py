"""Lists and reads the recordings of sessions' terminals in the object store. Workers write them."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from footplate.domain.errors import NotFound
from footplate.domain.ports.terminals import TerminalRecording
from footplate.domain.text.asciicast import RECORDINGS_FOLDER, recording_name
from footplate.store.object_store import Objects

_SUFFIX: Final = ".cast"


class StoredTerminalRecordings:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def list(self, organisation: str, session_id: str) -> Sequence[TerminalRecording]:
        found = await self._objects.list_objects(f"{organisation}/{session_id}/{RECORDINGS_FOLDER}")
        recordings = [
            TerminalRecording(
                id=each.key.rpartition("/")[2].removesuffix(_SUFFIX),
                session_id=session_id,
                size_bytes=each.size,
                created_at=each.written_at,
            )
            for each in found
            if each.key.endswith(_SUFFIX)
        ]
        return sorted(recordings, key=lambda recording: (recording.created_at, recording.id))

    async def find(self, organisation: str, session_id: str, recording_id: str) -> TerminalRecording:
        for recording in await self.list(organisation, session_id):
            if recording.id == recording_id:
                return recording
        raise NotFound("recording", recording_id)

    async def pieces(self, organisation: str, recording: TerminalRecording) -> AsyncIterator[bytes]:
        key = f"{organisation}/{recording.session_id}/{recording_name(recording.id)}"
        try:
            async for piece in self._objects.read_chunks(key):
                yield piece
        except FileNotFoundError:  # its session was deleted since it was found
            raise NotFound("recording", recording.id) from None
