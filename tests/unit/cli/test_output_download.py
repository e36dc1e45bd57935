"""Outputs are written below the chosen directory and nowhere else, whole or not at all."""

from pathlib import Path

import pytest

from footplate.cli.actions.output_download import OutputDownload
from footplate.client import ClientError


def download(directory: Path, filename: str, content: bytes = b"new", *, force: bool = False, size: int = 3) -> Path:
    with OutputDownload(directory, filename, force=force) as found:
        found.write(content)
        return found.finish(size)


@pytest.mark.parametrize("name", ["a.txt", "sub/deep/a.txt", " ", "a\nb", "-rf", "..a", "a\\b", "C:x", "%2e%2e/x"])
def test_any_name_below_the_directory_is_written(tmp_path: Path, name: str) -> None:
    path = download(tmp_path / "new", name)
    assert path == tmp_path / "new" / name
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [one for one in (tmp_path / "new").rglob("*") if one.is_file()] == [path], "no temporary file is left"


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../../x", "a/..", ".", "a//b", "a/", "./a", "a\0b", ".."])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    directory = tmp_path / "inner"
    with pytest.raises(ClientError, match="not a path below"):
        download(directory, name)
    assert not [one for one in tmp_path.rglob("*") if one.is_file()]


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, directory = tmp_path / "outside", tmp_path / "inner"
    outside.mkdir()
    directory.mkdir()
    (outside / "kept").write_text("kept")
    (directory / "sub").symlink_to(outside)
    (directory / "link").symlink_to(outside / "kept")
    with pytest.raises(ClientError, match="is not a directory"):
        download(directory, "sub/x", force=True)
    with pytest.raises(ClientError, match="exists"):
        download(directory, "link")
    assert not download(directory, "link", force=True).is_symlink()
    assert [(one.name, one.read_text()) for one in outside.iterdir()] == [("kept", "kept")]


def test_an_existing_file_is_replaced_only_with_force_and_only_by_a_complete_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(ClientError, match="exists"):
        download(tmp_path, "a")
    with pytest.raises(ClientError, match="2 of 3 bytes"):
        download(tmp_path, "a", b"ne", force=True)
    assert (tmp_path / "a").read_text() == "old"
    assert download(tmp_path, "a", force=True).read_text() == "new"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    (tmp_path / "directory").mkdir()
    with pytest.raises(ClientError, match="directory"):
        download(tmp_path, "directory", force=True)
