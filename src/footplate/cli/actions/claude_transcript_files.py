"""Finds, reads and writes Claude Code's transcript files on this machine.

Transcripts and server responses are untrusted. A name that could lead out of its directory is rejected. An existing
transcript is replaced only if the new one extends it, or with `--force`.
"""

import json
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from footplate.cli.render import value_formatting
from footplate.client import ClientError

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUBPATH: Final = re.compile(r"subagents(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}){1,8}")
_NOT_ALPHANUMERIC: Final = re.compile(r"[^a-zA-Z0-9]")
_MAX_NAME_LENGTH: Final = 200
"""Maximum length of a project's directory name. Claude Code shortens longer names in its own way."""
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Transcript:
    path: Path
    lines: int
    skipped_lines: int
    messages: int
    """Number of lines with messages."""
    title: str

    def import_lines(self) -> Iterator[bytes]:
        """Yields the lines in the format of the import endpoint: each unchanged, with the subpath of its file."""
        for subpath, file in transcript_files(self.path):
            encoded_subpath = json.dumps(subpath).encode()
            for raw in _read_lines(file):
                if _parse_object(raw) is not None:
                    yield b'{"subpath":%b,"line":%b}\n' % (encoded_subpath, raw.strip())
            if subpath and (metadata := _parse_object(_read_metadata(file))) is not None:
                yield b'{"subpath":%b,"line":%b}\n' % (
                    encoded_subpath,
                    json.dumps({**metadata, "type": "agent_metadata"}).encode(),
                )


def find_transcripts(paths: Sequence[Path]) -> list[Path]:
    """Returns the transcripts at the paths. A directory stands for the sessions in it and in its subdirectories."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        directories = [path, *(each for each in sorted(path.iterdir()) if each.is_dir())]
        files += [
            file
            for directory in directories
            for file in sorted(directory.glob("*.jsonl"))
            if _UUID.fullmatch(file.stem)
        ]
    return list(dict.fromkeys(files))


def read_transcript(path: Path) -> Transcript:
    lines = skipped_lines = messages = 0
    prompt = title = ""
    for subpath, file in transcript_files(path):
        for raw in _read_lines(file):
            line = _parse_object(raw)
            skipped_lines, lines = skipped_lines + (line is None), lines + (line is not None)
            if line is None or subpath:
                continue
            messages += line.get("type") in {"user", "assistant"}
            title = str(line.get("customTitle") or line.get("aiTitle") or "") or title
            prompt = prompt or _prompt_text(line)
    return Transcript(
        path, lines, skipped_lines, messages, value_formatting.title_from_prompt(title or prompt or path.stem)
    )


def transcript_files(path: Path) -> Iterator[tuple[str, Path]]:
    """Yields the files of a transcript with their subpaths, the main file first."""
    yield "", path
    below = path.with_suffix("")
    for file in sorted((below / "subagents").rglob("*.jsonl")):
        subpath = file.relative_to(below).with_suffix("").as_posix()
        if _SUBPATH.fullmatch(subpath) and ".." not in subpath:
            yield subpath, file


def project_directory(directory: Path, environment: Mapping[str, str]) -> Path:
    """Returns the directory where Claude Code looks for the sessions of a working directory."""
    base = Path(environment.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    name = _NOT_ALPHANUMERIC.sub("-", unicodedata.normalize("NFC", os.path.realpath(directory)))
    if len(name) > _MAX_NAME_LENGTH:
        raise ClientError(
            f"The path of {directory} is too long: Claude Code shortens it to a name that Footplate cannot derive.",
            help_text="Pull into a directory with a shorter path: --to DIR.",
        )
    return base / "projects" / name


class TranscriptDownload:
    """A transcript that is being downloaded, in a temporary directory until it is complete."""

    def __init__(self, project: Path, transcript_id: str) -> None:
        if not _UUID.fullmatch(transcript_id):
            raise ClientError(f"The server sent an invalid transcript ID: {transcript_id!r}.")
        project.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = project / f"{transcript_id}.jsonl"
        self.lines = 0
        self._temp_dir = tempfile.TemporaryDirectory(prefix=".footplate-", dir=project)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._temp_dir.cleanup()

    def add_line(self, line: Mapping[str, Any], subpath: str) -> None:
        self.lines += 1
        if subpath and line.get("type") == "agent_metadata":
            metadata = {name: value for name, value in line.items() if name != "type"}
            self._write(f"{_check_subpath(subpath)}.meta.json", json.dumps(metadata), "w")
        elif line.get("type") != "agent_metadata":
            name = f"{_check_subpath(subpath)}.jsonl" if subpath else "main.jsonl"
            self._write(name, json.dumps(line, separators=(",", ":")) + "\n", "a")

    def move_into_place(self, *, force: bool) -> None:
        """Moves the files into place, the main file last: Claude Code ignores the others until it exists."""
        target_dir = self.path.with_suffix("")
        temp_dir = Path(self._temp_dir.name)
        parts = [(file, target_dir / file.relative_to(temp_dir)) for file in sorted(temp_dir.glob("subagents/**/*.*"))]
        main = temp_dir / "main.jsonl"
        if not main.exists():
            raise ClientError("This session has no messages yet.", help_text="There is nothing to pull.")
        moves = [*parts, (main, self.path)]
        for new, old in moves:
            if not force and old.exists() and new.suffix == ".jsonl" and not _extends(new, old):
                raise ClientError(
                    f"{old} has lines that the session does not have.",
                    help_text="The file was continued on this machine, or belongs to another session. Save it with "
                    "`footplate import`, or replace it with --force.",
                )
        for new, old in moves:
            old.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.replace(new, old)  # noqa: PTH105 - explicit about replacing

    def _write(self, name: str, text: str, mode: str) -> None:
        path = Path(self._temp_dir.name, name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if mode == "a" else os.O_TRUNC), 0o600)
        with open(descriptor, mode, encoding="utf-8", newline="\n") as file:  # noqa: PTH123 - a descriptor
            file.write(text)


def _check_subpath(subpath: str) -> str:
    if not _SUBPATH.fullmatch(subpath) or ".." in subpath:
        raise ClientError(f"The server sent an invalid transcript path: {subpath!r}. Nothing was written.")
    return subpath


def _extends(new: Path, old: Path) -> bool:
    """Whether the new file starts with the whole content of the old one."""
    with new.open("rb") as longer, old.open("rb") as shorter:
        while piece := shorter.read(_CHUNK_BYTES):
            if longer.read(len(piece)) != piece:
                return False
    return True


def _read_lines(file: Path) -> Iterable[bytes]:
    with file.open("rb") as lines:
        yield from (raw for raw in lines if raw.strip())


def _read_metadata(file: Path) -> bytes:
    try:
        return file.with_suffix(".meta.json").read_bytes()
    except OSError:
        return b""


def _parse_object(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _prompt_text(line: Mapping[str, Any]) -> str:
    """Returns the text of a user message, from which the session's title is made."""
    message = line.get("message")
    if line.get("type") != "user" or line.get("isMeta") or not isinstance(message, dict):
        return ""
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return next((text for text in texts if isinstance(text, str) and text.strip() and text[0] != "<"), "")
