"""Comments quote the lines that a patch of the diff shows, and no others."""

import subprocess
from pathlib import Path

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.sessions.comments import MAX_QUOTED_CHARACTERS, DiffSide, LineRange
from footplate.trees.diffs.quoted_lines import quote_lines

OLD = {
    "changed.py": "".join(f"line {number}\n" for number in range(1, 31)),
    "renamed.py": "".join(f"text {number}\n" for number in range(1, 31)),
    "deleted.py": "gone\n",
    "binary": "\0\1",
    "same.py": "same\n",
}
NEW = {
    "changed.py": OLD["changed.py"].replace("line 10\n", "LINE 10\nadded\n").replace("line 30\n", "line 30"),
    "dir/new name.py": OLD["renamed.py"].replace("text 2\n", "TEXT 2\n"),
    "binary": "\0\2",
    "same.py": "same\n",
    "*.py": "-- a\n@@ -1,9 +1,9 @@\n+b\n",
    "long.txt": "x" * (MAX_QUOTED_CHARACTERS + 1) + "\nshort\n",
}


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Returns a git directory and the ids of both trees."""
    folder = tmp_path_factory.mktemp("repository")

    def git(*arguments: str) -> str:
        run = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return run.stdout.strip()

    git("init", "--quiet")
    ids = []
    for files in (OLD, NEW):
        git("rm", "-r", "--quiet", "--cached", "--ignore-unmatch", ".")
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            git("add", "--", f":(literal){name}")
        ids.append(git("write-tree"))
    return folder / ".git", ids[0], ids[1]


@pytest.mark.parametrize(
    ("path", "side", "start", "end", "code"),
    [
        ("changed.py", "new", 10, 11, "LINE 10\nadded"),
        ("changed.py", "old", 10, 10, "line 10"),
        ("changed.py", "new", 7, 14, "line 7\nline 8\nline 9\nLINE 10\nadded\nline 11\nline 12\nline 13"),
        ("changed.py", "old", 13, 13, "line 13"),
        ("changed.py", "new", 31, 31, "line 30"),
        ("dir/new name.py", "new", 2, 2, "TEXT 2"),
        ("dir/new name.py", "old", 1, 2, "text 1\ntext 2"),
        ("renamed.py", "old", 2, 2, "text 2"),
        ("deleted.py", "old", 1, 1, "gone"),
        ("*.py", "new", 1, 3, "-- a\n@@ -1,9 +1,9 @@\n+b"),
        ("long.txt", "new", 2, 2, "short"),
    ],
)
async def test_lines_of_the_patch_are_quoted(
    trees: tuple[Path, str, str], path: str, side: DiffSide, start: int, end: int, code: str
) -> None:
    assert await quote_lines(*trees, LineRange(path=path, side=side, start=start, end=end)) == code


@pytest.mark.parametrize(
    ("path", "side", "start", "end", "problem"),
    [
        ("changed.py", "new", 6, 7, "does not show lines 6-7"),
        ("changed.py", "new", 14, 29, "does not show"),
        ("changed.py", "new", 32, 32, "does not show line 32"),
        ("changed.py", "new", 13, 28, "does not show"),
        ("deleted.py", "new", 1, 1, "as it was after the change"),
        ("same.py", "new", 1, 1, "did not change"),
        ("../same.py", "new", 1, 1, "did not change"),
        ("binary", "new", 1, 1, "binary file"),
        ("long.txt", "new", 1, 1, "more than 20000 characters"),
    ],
)
async def test_other_lines_are_refused(
    trees: tuple[Path, str, str], path: str, side: DiffSide, start: int, end: int, problem: str
) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        await quote_lines(*trees, LineRange(path=path, side=side, start=start, end=end))
