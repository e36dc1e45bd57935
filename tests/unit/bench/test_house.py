"""The house rules find what they are there to find."""

from pathlib import Path

from bench import house


def test_long_and_unfinished_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = 1\n" * (house.LONGEST + 1))
    (tmp_path / "open.py").write_text("# " + "TODO: later\n")
    (tmp_path / "fine.py").write_text("x = 1\n" * house.LONGEST)
    assert [line.split(":")[0].rpartition("/")[2] for line in house.complaints(tmp_path)] == ["long.py", "open.py"]
