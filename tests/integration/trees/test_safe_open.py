"""Files are opened only inside the workspace, and the opened file is the inspected one."""

import os
from pathlib import Path

from footplate.trees.safe_open import SafeDirectory


def test_no_link_is_followed_on_the_way_or_at_the_end(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret").write_text("secret")
    (inside / "directory").symlink_to(outside)
    (inside / "file").symlink_to(outside / "secret")
    with SafeDirectory(inside) as workspace:
        with workspace.inspect(b"directory/secret") as found:
            assert found is None
        with workspace.inspect(b"file") as found:
            assert found is not None
            assert found.is_link
            assert found.read_link() == os.fsencode(outside / "secret")
        assert workspace.list_directory(b"directory") == []
        assert not workspace.is_directory(b"directory")


def test_a_swapped_file_is_read_as_it_was_inspected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("looked at")
    (tmp_path / "secret").write_text("secret")
    with SafeDirectory(tmp_path) as workspace, workspace.inspect(b"file") as found:
        assert found is not None
        (tmp_path / "file").unlink()
        (tmp_path / "file").symlink_to("secret")
        with found.open_file() as fd:
            assert os.read(fd, 100) == b"looked at"


def test_a_directory_swapped_while_open_does_not_lead_outside(tmp_path: Path) -> None:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "b" / "file").write_text("inside")
    (tmp_path / "outside" / "b").mkdir(parents=True)
    (tmp_path / "outside" / "b" / "file").write_text("outside")
    with SafeDirectory(tmp_path / "root") as workspace:
        with workspace.inspect(b"a/b/file") as found:
            assert found is not None
        (tmp_path / "root" / "a").rename(tmp_path / "root" / "c")
        (tmp_path / "root" / "a").symlink_to(tmp_path / "outside")
        with workspace.inspect(b"a/b/file") as found:
            assert found is not None
            with found.open_file() as fd:
                assert os.read(fd, 100) == b"inside"
        with workspace.inspect(b"c/b/file") as found:
            assert found is not None
        with workspace.inspect(b"a/b/file") as found:
            assert found is None


def test_file_descriptors_are_closed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with SafeDirectory(tmp_path) as workspace:
        for path in (b"a/b/missing", b"a", b"missing/too", b"a/b"):
            with workspace.inspect(path):
                pass
        workspace.list_directory(b"a/b")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
