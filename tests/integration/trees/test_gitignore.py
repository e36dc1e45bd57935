"""New files are ignored exactly as git ignores them. Rules that are not supported are left to git."""

import random
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import World, git, make_world

from footplate.trees.safe_open import SafeDirectory
from footplate.trees.snapshots.gitignore import GitignoreMatcher, UnsupportedRule

NAMES = ("a", "b", "ab", "a.log", "build", "a b", "ü")
PATTERNS = (
    *(
        "a",
        "*.log",
        "/a",
        "a/",
        "!a",
        "build/",
        "!build/",
        "*",
        "a*",
        "?",
        "a?",
        "/*",
        "!/a",
        "ü",
        "a b",
        "a b  ",
        "#a",
    ),
    *(
        "a/b",
        "/a/b",
        "a/*",
        "a/**",
        "**/a",
        "**/a/b",
        "a/**/b",
        "**",
        "**/",
        "/**/a",
        "!a/b",
        "*/b",
        "build/*.log",
        "",
        "/",
    ),
)


@pytest.fixture
async def world(tmp_path: Path) -> World:
    world = await make_world(tmp_path)
    git(world.files, "init", "--quiet")
    return world


@pytest.mark.parametrize("seed", range(12))
def test_ignores_the_same_files_as_git(world: World, seed: int) -> None:
    chance = random.Random(seed)
    paths: set[Path] = set()
    for _ in range(12):
        path = Path(*(chance.choice(NAMES) for _ in range(chance.randint(1, 4))))
        if not any(path.is_relative_to(other) or other.is_relative_to(path) for other in paths):
            paths.add(path)
            (world.files / path).parent.mkdir(parents=True, exist_ok=True)
            (world.files / path).touch()
    for directory in {Path(), *chance.sample(sorted(path.parent for path in paths), 1)}:
        lines = [chance.choice(PATTERNS) for _ in range(chance.randint(1, 4))]
        (world.files / directory / ".gitignore").write_text("\n".join(lines))
    listed = {Path(line) for line in git(world.files, "ls-files", "-z", "--others", "--exclude-standard").split("\0")}
    with SafeDirectory(world.files) as workspace:
        ignores = GitignoreMatcher(workspace)
        for path in paths:
            try:
                assert ignores.is_ignored(str(path).encode()) == (path not in listed), (path, seed)
            except UnsupportedRule:
                continue


@pytest.mark.parametrize("pattern", ["[ab]", "a\\*", "a**", "x/**y/z", "*" * 2 + "a"])
def test_unsupported_patterns_require_git(world: World, pattern: str) -> None:
    (world.files / ".gitignore").write_text(pattern)
    with SafeDirectory(world.files) as workspace, pytest.raises(UnsupportedRule):
        GitignoreMatcher(workspace).is_ignored(b"some")


def test_a_gitignore_that_is_a_symlink_requires_git(world: World) -> None:
    (world.files / ".gitignore").symlink_to("/etc/passwd")
    with SafeDirectory(world.files) as workspace, pytest.raises(UnsupportedRule):
        GitignoreMatcher(workspace).is_ignored(b"some")
