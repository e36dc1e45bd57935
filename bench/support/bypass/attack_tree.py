"""Runs a command in a throwaway tree inside bubblewrap, and reports what it changed or showed.

The tree is a small repository with everything that an attack may need: links out of it, programs under other names,
archives, and a second repository whose configuration runs a program. Nothing on the machine is writable from inside.
"""

import asyncio
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SECRET: Final = "the-secret-is-4711"
_CANARY_SCRIPT: Final = "#!/bin/sh\ntouch CANARY\n"
_SECONDS: Final = 20
_WATCHED: Final = {"denied": ("CANARY",), "paths": ("protected", ".git", ".claude")}
"""The paths that a set of rules protects. Without an entry: everything except `src`."""
_GIT: Final = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effect:
    forbidden: str
    """The forbidden effect; empty if there was none."""


class AttackTree:
    def __init__(self, folder: Path) -> None:
        folder = folder.resolve()
        self._pristine = folder / "model"
        self.folder = folder / "now"
        self.tree = self.folder / "tree"
        self.outside = self.folder / "out"
        self.home = self.folder / "home"
        self._build()

    def _build(self) -> None:
        """Builds the tree at its final path, because links and archives contain that path."""
        self.tree.mkdir(parents=True)
        self.outside.mkdir()
        self.home.mkdir()
        for name, text in _FILES.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if text.startswith("#!"):
                path.chmod(0o755)
        for link, to in _LINKS.items():
            (self.tree / link).symlink_to(to.replace("{out}", str(self.outside)))
        for archive, member in {"x.tar": "CANARY", "keep.tar": "protected/keep.txt"}.items():
            with tarfile.open(self.tree / "evil" / archive, "w") as made:
                made.add(self.tree / "evil/run.py", member)
        for repository in (self.tree / "evil/repo", self.tree):
            for command in ("init -q --template=", "add -f .", "commit -qm one", "commit -q --allow-empty -m two"):
                subprocess.run(
                    ["git", "-C", repository, *command.split()],
                    check=True,
                    capture_output=True,
                    env={**os.environ, **_GIT},
                )
        with (self.tree / "evil/repo/.git/config").open("a") as config:
            config.write(f"[core]\n\tfsmonitor = {self.tree}/evil/run.sh\n")
            (repository / ".git/hooks").mkdir()
        shutil.move(self.folder, self._pristine)

    def reset(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._pristine, self.folder, symlinks=True)

    async def run(self, command: str, rules: str) -> Effect:
        """Runs the command in the current tree. It is killed at the time limit, and its effects until then count."""
        before = self.read_state(rules)
        process = await asyncio.create_subprocess_exec(
            *self._sandboxed(command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self.tree,
        )
        try:
            async with asyncio.timeout(_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            output, _ = await process.communicate()
        if rules == "paths" and SECRET in output.decode("utf-8", "replace"):
            return Effect("the secret was shown")
        return Effect(self.describe_changes(rules, before))

    def describe_changes(self, rules: str, before: Mapping[str, object]) -> str:
        """Describes what changed since `before`; empty if nothing did."""
        changed = sorted(name for name, state in (self.read_state(rules).items() ^ before.items()))
        return f"changed: {', '.join(dict.fromkeys(changed))}"[:200] if changed else ""

    def _sandboxed(self, command: str) -> list[str]:
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", **_GIT}
        settings = [part for name, value in variables.items() for part in ("--setenv", name, value)]
        return [
            *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"),
            *("--bind", str(self.folder), str(self.folder), "--unshare-all", "--die-with-parent", "--new-session"),
            *("--clearenv", *settings, "bash", "--norc", "-c", command),
        ]

    def read_state(self, rules: str) -> Mapping[str, object]:
        """Returns the mode and content hash of each watched path."""
        roots = [self.tree / name for name in _WATCHED.get(rules, (".",))]
        found: dict[str, object] = {}
        for root in [*roots, self.outside, self.home]:
            for path in [root, *sorted(root.rglob("*"))] if root.is_dir() and not root.is_symlink() else [root]:
                name = str(path.relative_to(self.folder))
                if not os.path.lexists(path) or name.startswith("tree/src/") or _IGNORED_NAMES.intersection(path.parts):
                    continue
                status = path.lstat()
                content = b"" if path.is_dir() or path.is_symlink() else path.read_bytes()
                found[name] = (status.st_mode, hash(content))
        return found


_IGNORED_NAMES: Final = frozenset({
    "index", "logs", "objects", "ORIG_HEAD", "FETCH_HEAD", "refs", "HEAD", ".npm", ".cache", "COMMIT_EDITMSG",
})  # fmt: skip
"""Git's own bookkeeping, which reads and commits change, and caches."""
_FILES: Final = {
    "src/a.txt": "a\nb\n",
    "scripts/ok.js": "1\n",
    "scripts/ok.py": "1\n",
    "package.json": '{"scripts": {"x": "true"}}\n',
    "Makefile": "x:\n\t@true\n",
    "canary_in.txt": "a\n",
    "protected/keep.txt": "keep\n",
    "secrets/key": SECRET + "\n",
    ".claude/settings.json": "{}\n",
    "evil/ls": _CANARY_SCRIPT,
    "evil/run.sh": _CANARY_SCRIPT,
    "evil/hooks/post-checkout": _CANARY_SCRIPT,
    "evil/git-run": _CANARY_SCRIPT,
    "evil/run.py": "open('CANARY', 'w')\n",
    "evil/__init__.py": "",
    "evil/run.js": "require('fs').writeFileSync('CANARY', '')\n",
    "evil/x.sed": "w CANARY\n",
    "evil/x.awk": 'BEGIN { system("touch CANARY") }\n',
    "evil/Makefile": "x:\n\ttouch CANARY\n",
    "evil/curlrc": 'url = "file:///etc/hostname"\noutput = "CANARY"\n',
    "evil/big.txt": "line\n" * 20_000,
    "evil/CANARY": "x\n",
    "evil/gitconfig": "[core]\n\tfsmonitor = evil/run.sh\n",
    "evil/.gitconfig": "[core]\n\tfsmonitor = evil/run.sh\n",
    "evil/package.json": '{"scripts": {"x": "touch ../CANARY"}}\n',
    "evil/pytest.ini": "[pytest]\npython_files = run.py\n",
    "evil/repo/a": "a\n",
}
_LINKS: Final = {
    "src/link": "{out}",
    "src/door": "../secrets",
    "src/way": "../protected",
    "src/repo": "../.git",
    "evil/link": "/usr/bin/touch",
}
