"""Implements the session store of the Claude Agent SDK: appends the CLI's transcript to the log, and loads it.

Of the SDK's optional methods, only the one that is needed to resume a session is implemented. Sessions are listed and
deleted through Footplate's API.
"""

from collections.abc import Callable

import claude_agent_sdk as sdk

from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import Entry
from footplate.harness.claude.recording.recorder import TurnRecorder
from footplate.harness.claude.transcripts import transcript_lines
from footplate.harness.claude.transcripts.transcript_lines import LINE, TranscriptKey


class LogSessionStore:
    def __init__(self, recorder: Callable[[], TurnRecorder]) -> None:
        """`recorder`: returns the recorder of the CLI's current turn."""
        self._recorder = recorder

    async def append(self, key: sdk.SessionKey, entries: list[sdk.SessionStoreEntry]) -> None:
        await self._recorder().record_lines(TranscriptKey.from_session_key(key), entries)

    async def load(self, key: sdk.SessionKey) -> list[JsonObject] | None:
        wanted = TranscriptKey.from_session_key(key)
        found = [transcript_lines.line_of(entry) for entry in self._lines() if transcript_lines.key_of(entry) == wanted]
        return found or None

    async def list_subkeys(self, key: sdk.SessionListSubkeysKey) -> list[str]:
        wanted = (key["project_key"], key["session_id"])
        keys = [transcript_lines.key_of(entry) for entry in self._lines()]
        return sorted(
            {
                transcript_key.subpath
                for transcript_key in keys
                if (transcript_key.project, transcript_key.session) == wanted
            }
            - {""}
        )

    def _lines(self) -> list[Entry]:
        return [entry for entry in self._recorder().entries if entry.kind == LINE]
