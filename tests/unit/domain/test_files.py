"""Names and mount paths of files cannot create a git repository."""

from datetime import UTC, datetime

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.files.attachments import Attachment
from footplate.domain.files.uploaded_files import StoredFile, resolve_mount_path, safe_file_name

HOSTILE = [".git", ".GIT", ".git.", ".Git ", ".g\u200cit", "git~1", "GIT~1", ".git:x", "\ufeff.git", "\uff0egit"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_git_would_treat_as_a_repository_is_renamed(name: str) -> None:
    assert safe_file_name(name) == "unnamed"
    assert safe_file_name(f"a/{name}", ".txt") == "unnamed.txt"
    assert Attachment(b"gitdir: /tmp/x", "text/plain", name).path.rpartition("/")[2].startswith("unnamed")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_is_mounted_in_a_repository(name: str) -> None:
    file = StoredFile(
        id="file_1",
        organisation="org",
        filename="a",
        mime_type="text/plain",
        size_bytes=1,
        created_at=datetime.now(UTC),
        expires_at=None,
    )
    for path in (name, f"{name}/hooks/pre-commit", f"a/{name}/config", f"/workspace/{name}"):
        with pytest.raises(InvalidRequest):
            resolve_mount_path(file, path)


@pytest.mark.parametrize("name", [".gitignore", ".github", "a.git", "git", ".gitattributes", "git~2x"])
def test_other_names_are_unchanged(name: str) -> None:
    assert safe_file_name(name) == name
