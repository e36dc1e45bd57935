"""Makes a git repository of many small files for a measurement."""

import subprocess
from pathlib import Path


def make_repository(path: Path, files: int) -> None:
    for number in range(files):
        file = path / "src" / f"{number // 500}" / f"{number // 50}" / f"{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"VALUE = {number}\n" * 20)
    (path / "README.md").write_text("A repository.\n")
    for argv in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "base"],
    ):
        subprocess.run(["git", "-C", str(path), *argv], check=True)
