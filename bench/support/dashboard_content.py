"""Starts a cluster with realistic content for the dashboard, and prints its address and an API key:
`python -m bench.support.dashboard_content`. It runs until Ctrl-C, and then deletes everything.

The sessions are real: the scripted model calls tools in sandboxes, in a project of its own. There are sessions in every
state, approvals, questions, failures, a queue, a subagent, a fork, and names that are hard to show.
"""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.support.clients import TOOLSET, Client
from bench.support.cluster import Cluster, open_cluster
from footplate.stack.orphan_processes import wait_until
from footplate.testing.model_scripts import Replies, replies
from footplate.testing.reply_steps import Step, hang, http_error, text, thinking, tool, usage

_SETTLED_WITHIN: Final = 120.0
_PERMISSIONS: Final = {"ask": ["Bash(git push *)", "Bash(rm *)"], "allow": ["Bash(*)", "Edit", "Write"]}
_STATS: Final = """def mean(values):
    return sum(values) / len(values)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle]
"""
_TESTS: Final = """import unittest

from stats import median


class MedianTest(unittest.TestCase):
    def test_odd_count(self):
        self.assertEqual(median([3, 1, 2]), 2)

    def test_even_count(self):
        self.assertEqual(median([1, 2, 3, 4]), 2.5)
"""
_FIX: Final = (
    "sed -i 's|    return ordered.middle.|    if len(ordered) % 2:\\n        return ordered[middle]\\n"
    "    return (ordered[middle - 1] + ordered[middle]) / 2|' stats.py"
)
_BENCHMARK: Final = "for i in $(seq 3600); do echo run $i; sleep 1; done"
_BENCHMARK_RUNS: Final = 60
_MARKDOWN: Final = """The median of an even count is **wrong**: it returns the upper of the two middle values.

| input | expected | actual |
|---|---|---|
| `[1, 2, 3, 4]` | 2.5 | 3 |

```python
return (ordered[middle - 1] + ordered[middle]) / 2
```

1. Fix `median` in `stats.py`.
2. Run the tests again.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSession:
    title: str
    prompt: str
    script: Replies
    project: bool = True
    """Whether it works in the project `website`."""
    further_prompts: Sequence[str] = ()
    is_paused: bool = False
    expected: frozenset[str] = frozenset({"completed"})
    """The activity states in which it is finished as content."""


def _bash(command: str) -> Step:
    return tool("bash", {"command": command})


def _question() -> Step:
    options = [
        {"label": "PostgreSQL 16", "description": "What production runs today."},
        {"label": "PostgreSQL 17", "description": "Incremental backups, and a faster vacuum."},
    ]
    question = {
        "question": "Which database version should the schema target?",
        "header": "Database",
        "options": options,
    }
    return tool("ask_user", {"questions": [question]})


def build_sessions() -> list[ContentSession]:
    work = [
        [thinking("The tests fail. I look at the failing one first, then at median."), _bash("python3 -m unittest -v")],
        [text(_MARKDOWN), _bash(_FIX), usage(4200, 380, cache_read=18_000)],
        [_bash("python3 -m unittest -v")],
    ]
    return [
        ContentSession(
            title="Make the tests pass",
            prompt="Make the tests pass",
            script=replies(
                *work,
                [text("All tests pass now. The median of an even count is the mean of both middles.")],
                [text("It took one of two middle values.")],
            ),
            further_prompts=("Explain what was wrong in one sentence.",),
        ),
        ContentSession(
            title="Publish the median fix",
            prompt="Fix the median and push the branch",
            script=replies(*work, [text("Tests pass. Pushing the branch."), _bash("git push origin fix/median")]),
            expected=frozenset({"waiting_for_approval"}),
        ),
        ContentSession(
            title="Clean the build directory",
            prompt="Remove what the build left behind",
            script=replies([text("I remove the directory."), _bash("rm -rf build/ \u202edist\u202c && echo done")]),
            expected=frozenset({"waiting_for_approval"}),
        ),
        ContentSession(
            title="Upgrade the schema",
            prompt="Upgrade the schema to the version that we run",
            script=replies([text("Two versions are possible."), _question()], [text("The schema is upgraded.")]),
            expected=frozenset({"waiting_for_answer"}),
        ),
        ContentSession(
            title="Refactor the parser",
            prompt="Refactor the parser without changing its behaviour",
            script=replies(
                [thinking("The parser has three parts."), _bash("ls -la")],
                [text("I split the parser into three modules. The first one reads tokens. ", chunks=3), hang()],
            ),
            expected=frozenset({"running"}),
        ),
        ContentSession(
            title="Run the long benchmark",
            prompt="Run the benchmark and report the figures",
            # A command may run for two minutes; the model then starts it again.
            script=replies(
                [text("This takes a while."), _bash(_BENCHMARK)], *([_bash(_BENCHMARK)] for _ in range(_BENCHMARK_RUNS))
            ),
            expected=frozenset({"running"}),
        ),
        ContentSession(
            title="Nightly dependency update",
            prompt="Update all dependencies",
            script=replies([http_error(400, message="max_tokens: 999999 is more than this model supports")]),
            expected=frozenset({"failed"}),
        ),
        ContentSession(
            title="Plan the release",
            prompt="Write the release notes",
            script=replies(
                [text("Here are the release notes.")], [text("Voici les notes de version.")], [text("They are sent.")]
            ),
            further_prompts=("Translate them into French", "Send them to the mailing list"),
            is_paused=True,
            expected=frozenset({"paused", "queued", "completed"}),
        ),
        ContentSession(
            title="Delegate the review",
            prompt="Let a helper review stats.py",
            script=replies(
                [
                    tool(
                        "subagent",
                        {
                            "description": "Review stats.py",
                            "prompt": "Review [[script:content-helper]]",
                            "subagent_type": "helper",
                        },
                    )
                ],
                [text("The helper found one problem: `mean` fails for an empty list.")],
            ),
            expected=frozenset({"completed", "failed"}),
        ),
        ContentSession(
            title="تحديث الصفحة الرئيسية 🚀 — a very long title that goes on and on, with 日本語, emoji 👨‍👩‍👧 and "
            "<script>alert(1)</script> in it, so that every row must cut it somewhere sensible",
            prompt="Answer in one line",
            script=replies([text("شكرا 🙏 <img src=x onerror=alert(1)> **done** [link](https://example.com/)")]),
            project=False,
        ),
        ContentSession(
            title="Fix a typo in README",
            prompt="Fix the typo",
            script=replies([_bash("sed -i 's/teh/the/' README.md")], [text("Fixed: `teh` is now `the`.")]),
        ),
    ]


def create_repository(directory: Path) -> Path:
    """Creates a small git repository with a failing test."""
    repository = directory / "website"
    repository.mkdir(parents=True)
    (repository / "stats.py").write_text(_STATS)
    (repository / "test_stats.py").write_text(_TESTS)
    (repository / "README.md").write_text("# Website\n\nStatistics for teh home page.\n")
    name = ("-c", "user.name=Content", "-c", "user.email=content@example.com")
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        (*name, "commit", "-qm", "Statistics with a failing test"),
    ):
        subprocess.run(("git", "-C", str(repository), *arguments), check=True)
    return repository


@asynccontextmanager
async def open_content_cluster() -> AsyncIterator[Cluster]:
    """Starts a cluster. Its content is not created yet."""
    async with open_cluster() as cluster:
        yield cluster


async def create_content(cluster: Cluster, *, report: bool = False) -> dict[str, str]:
    """Creates all sessions and waits until each has its state. Returns their ids by title."""
    sessions = build_sessions()
    await cluster.model.install("content-helper", replies([text("`mean` fails for an empty list.")]))
    repository = create_repository(cluster.directory / "data" / "projects" / "default")
    async with Client(cluster) as client:
        project_id = await _create_project(client, repository)
        toolset = {**TOOLSET, "ask_user": True}
        agent = await client.agent(
            name="website-engineer",
            tools=[toolset],
            extra_body={"harness": "native", "permissions": _PERMISSIONS},
        )
        found = await asyncio.gather(
            *(
                _create_session(cluster, client, each, number, agent, project_id)
                for number, each in enumerate(sessions)
            ),
            return_exceptions=True,
        )
    ids: dict[str, str] = {}
    for each, result in zip(sessions, found, strict=True):
        if isinstance(result, BaseException):
            print(f"not created: {each.title}: {result}", file=sys.stderr)
            continue
        session_id, state = result
        ids[each.title] = session_id
        if report:
            print(f"{state:<22} {session_id}  {each.title[:60]}")
        if state not in each.expected:
            print(f"unexpected state {state}: {each.title}", file=sys.stderr)
    return ids


async def _create_project(client: Client, repository: Path) -> str:
    body: Any = await client.sdk.post(
        "/v1/projects", body={"name": "website", "path": repository.name}, cast_to=dict[str, Any]
    )
    return str(body["id"])


async def _create_session(
    cluster: Cluster, client: Client, session: ContentSession, number: int, agent: str, project_id: str
) -> tuple[str, str]:
    script = f"content-{number}"
    await cluster.model.install(script, session.script)
    extra: dict[str, Any] = {"project_ids": [project_id]} if session.project else {}
    session_id = await client.session(agent, title=session.title, extra_body=extra)
    await client.send_text(session_id, f"{session.prompt} [[script:{script}]]")
    if session.is_paused:
        await client.sdk.post(f"/v1/sessions/{session_id}/pause", body={}, cast_to=dict[str, Any])
    for prompt in session.further_prompts:
        await client.send_text(session_id, prompt)
    state = ""

    async def has_expected_state() -> bool:
        nonlocal state
        body: Any = await client.sdk.get(f"/v1/sessions/{session_id}", cast_to=dict[str, Any])
        state = body["activity"]["state"]
        return state in session.expected

    await wait_until(has_expected_state, _SETTLED_WITHIN)
    return session_id, state


async def _serve() -> None:
    async with open_content_cluster() as cluster:
        print(f"FOOTPLATE_BASE_URL={cluster.base_urls[0]}\nFOOTPLATE_API_KEY={cluster.key}", flush=True)
        await create_content(cluster, report=True)
        print("The content is complete. Ctrl-C stops everything.", flush=True)
        await asyncio.Event().wait()


async def _serve_until_signal() -> None:
    serving = asyncio.create_task(_serve())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


if __name__ == "__main__":
    asyncio.run(_serve_until_signal())
