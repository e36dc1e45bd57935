"""A session's files outlive the host that they were made on, in every harness."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bench.prove.clients import Client, Event
from bench.prove.cluster import Cluster, open_cluster
from bench.prove.hosts import data_of, host

from footplate.stack import Stack
from footplate.stack.leftovers import wait_until
from footplate.testing import Step, replies, reply, text, tool

NAMES = {"native": "bash", "claude": "Bash"}
FAST = {"FOOTPLATE_LEASE": "4", "FOOTPLATE_HEARTBEAT_TIMEOUT": "6"}


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    repository = tmp_path / "projects" / "app"
    repository.mkdir(parents=True)
    (repository / "file").write_text("one\n")
    (repository / "other").write_text("x\n")
    for command in ("init -q -b main", "add -A", "-c user.name=User -c user.email=u@example.com commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=repository, check=True)
    return repository.parent


@pytest.fixture
async def cluster(stack: Stack, projects: Path) -> AsyncIterator[Cluster]:
    environment = {**FAST, "FOOTPLATE_PROJECTS_ROOT": str(projects)}
    async with open_cluster(workers=0, stack=stack, environment=environment) as cluster:
        yield cluster


@pytest.fixture
async def one_worker(stack: Stack, projects: Path) -> AsyncIterator[Cluster]:
    environment = {"FOOTPLATE_PROJECTS_ROOT": str(projects)}
    async with open_cluster(workers=1, stack=stack, environment=environment) as cluster:
        yield cluster


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with Client(cluster) as client:
        yield client


def said(events: list[Event]) -> list[str]:
    results = [event for event in events if event["type"] == "agent.tool_result"]
    return ["".join(block["text"] for block in event["content"]).strip() for event in results]


def apply(patch: bytes, place: Path) -> None:
    place.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    subprocess.run(["git", "apply"], cwd=place, input=patch, check=True)


async def a_session(client: Client, harness: str, *, with_project: bool) -> str:
    agent = await client.agent(extra_body={"harness": harness})
    if not with_project:
        return await client.session(agent)
    made = await client.sdk.post("/v1/projects", body={"path": "app"}, cast_to=dict[str, Any])
    return await client.session(agent, extra_body={"project_ids": [made["id"]]})


@pytest.mark.parametrize("with_project", [True, False])
@pytest.mark.parametrize("harness", ["native", "claude"])
async def test_another_host_finishes_the_turn_with_the_files(
    cluster: Cluster, client: Client, harness: str, *, with_project: bool
) -> None:
    def bash(command: str) -> Step:
        return tool(NAMES[harness], {"command": command})

    begin = "echo two > file"
    look = "cat file in/new link; ls -A | tr '\\n' ' '"
    if with_project:
        begin += " && git commit -qam second && echo staged > staged && git add staged"
        look += "; git log --format=%s; git status --porcelain"
    await cluster.model.install(
        "work",
        replies(
            [bash(f"{begin}; echo done")],
            [bash("mkdir in && printf kept > in/new && chmod +x in/new && ln -s in/new link && rm -f other")],
            [bash("echo lost > lost; sleep 60")],
            [bash(look)],
            [text("Done.")],
        ),
    )
    first, second = host(cluster, "a", "sandbox"), host(cluster, "b", "sandbox")
    await first.start()
    session_id = await a_session(client, harness, with_project=with_project)
    async with client.stream(session_id) as stream:
        await client.send_text(session_id, "[[script:work]]")
        seen: list[Event] = []
        while sum(event["type"] == "agent.tool_use" for event in seen) < 3:
            seen += await stream.until("agent.tool_use", patience=120)
        await asyncio.sleep(0.5)
        await first.kill()
        await asyncio.to_thread(shutil.rmtree, data_of(cluster, "a"))
        await second.start()
        seen += await stream.until_idle(patience=120)
    await second.stop()
    *_, unknown, last = said(seen)
    assert "unknown" in unknown
    there = ".git file in link staged" if with_project else "file in link"
    state = "second\nfirst\n D other\nA  staged\n?? in/\n?? link" if with_project else ""
    assert last == f"two\nkeptkept{there} {state}".strip()


@pytest.mark.parametrize("with_project", [True, False])
@pytest.mark.parametrize("harness", ["native", "claude"])
async def test_a_fork_has_the_files_of_its_event_and_a_diff_tells_what_changed(
    one_worker: Cluster, projects: Path, tmp_path: Path, harness: str, *, with_project: bool
) -> None:
    cluster = one_worker

    def bash(command: str) -> Step:
        return tool(NAMES[harness], {"command": command})

    steps = [[bash(f"echo {n} > made-{n}; echo line {n} >> file; echo {n}")] for n in range(1, 4)]
    await cluster.model.install("work", replies(*steps, [text("Done.")]))
    await cluster.model.install("more", replies([bash("echo more > file; rm made-1; cat made-*")], [text("Done.")]))
    await cluster.model.install("look", replies([bash("ls -A | tr '\\n' ' '; cat file")], [text("Seen.")]))
    async with Client(cluster) as client:
        session_id = await a_session(client, harness, with_project=with_project)
        events = await client.run_turn(session_id, "[[script:work]]", patience=120)
        results = [event["id"] for event in events if event["type"] == "agent.tool_result"]
        await client.run_turn(session_id, "[[script:more]]", patience=120)
        newest, first = [turn["id"] for turn in await client.turns(session_id)]

        fork = await client.sdk.post(
            f"/v1/sessions/{session_id}/fork", body={"at_event_id": results[1]}, cast_to=dict[str, Any]
        )
        (seen,) = said(await client.run_turn(fork["id"], "[[script:look]]", patience=120))
        here = ".git file made-1 made-2 other" if with_project else "file made-1 made-2"
        begins = "one\n" if with_project else ""
        assert seen == f"{here} {begins}line 1\nline 2"

        async def summary(**which: str) -> dict[str, tuple[str, int, int]]:
            found: Any = await client.sdk.get(
                f"/v1/sessions/{session_id}/diff", cast_to=dict[str, Any], options={"params": which}
            )
            (tree,) = found["trees"]
            return {file["path"]: (file["status"], file["added"], file["deleted"]) for file in tree["files"]}

        old = 1 if with_project else 0
        assert await summary(from_event_id=results[0], to_event_id=results[1]) == {
            "file": ("modified", 1, 0),
            "made-2": ("added", 1, 0),
        }
        assert await summary(turn_id=newest) == {"file": ("modified", 1, 3 + old), "made-1": ("deleted", 0, 1)}
        assert set(await summary(turn_id=first)) == {"file", "made-1", "made-2", "made-3"}
        assert await summary() == {
            "file": ("modified" if with_project else "added", 1, old),
            "made-2": ("added", 1, 0),
            "made-3": ("added", 1, 0),
        }

        async def patch() -> bytes:
            answer = await client.http.get(
                f"{cluster.base_urls[0]}/v1/sessions/{session_id}/diff?format=patch",
                headers={"x-api-key": cluster.key},
            )
            assert answer.status_code == 200, answer.text
            return answer.content

        whole = await patch()
        await asyncio.to_thread(shutil.move, cluster.directory / "data" / "trees", tmp_path / "gone")
        assert await patch() == whole, "from the object store alone it is the same"

        async def nothing_left() -> bool:
            return not [*(cluster.directory / "data" / "diffs").iterdir()]

        assert await wait_until(nothing_left, 10)
    place = projects / "app" if with_project else tmp_path / "empty"
    await asyncio.to_thread(apply, whole, place)
    assert ((place / "file").read_text(), (place / "made-3").read_text()) == ("more\n", "3\n")


@pytest.mark.parametrize("harness", ["native", "claude"])
async def test_a_file_that_came_with_a_message_is_there_on_another_host(
    cluster: Cluster, client: Client, harness: str
) -> None:
    """Its first host is lost before any tool ran: who is told of a file has it."""
    look = tool(NAMES[harness], {"command": "cat .footplate/uploads/*/a.txt given/b.txt"})
    await cluster.model.install("hear", replies([text("Heard.")]))
    await cluster.model.install("look", replies([look], [text("Seen.")]))
    first, second = host(cluster, "a", "sandbox"), host(cluster, "b", "sandbox")
    made = [await client.sdk.beta.files.upload(file=(name, name.encode())) for name in ("a.txt", "b.txt")]
    agent = await client.agent(extra_body={"harness": harness})
    mounted: Any = [{"type": "file", "file_id": made[1].id, "mount_path": "given/b.txt"}]
    session_id = await client.session(agent, resources=mounted)
    document = {"type": "document", "source": {"type": "file", "file_id": made[0].id}, "deliver": "file"}
    event: Any = {"type": "user.message", "content": [{"type": "text", "text": "[[script:hear]]"}, document]}
    await first.start()
    async with client.stream(session_id) as stream:
        await client.sdk.beta.sessions.events.send(session_id, events=[event])
        await stream.until_idle(patience=120)
    (turn,) = await client.turns(session_id)
    found: Any = await client.sdk.get(
        f"/v1/sessions/{session_id}/diff", cast_to=dict[str, Any], options={"params": {"turn_id": turn["id"]}}
    )
    assert found["trees"][0]["files"] == [], "what came with the message is not the turn's work"
    for file in made:
        await client.sdk.beta.files.delete(file.id)
    await first.kill()
    await asyncio.to_thread(shutil.rmtree, data_of(cluster, "a"))
    await second.start()
    try:
        assert said(await client.run_turn(session_id, "[[script:look]]", patience=120)) == ["a.txtb.txt"]
    finally:
        await second.stop()


async def test_a_file_that_the_model_was_told_of_is_there_when_the_host_is_lost_at_once(
    cluster: Cluster, client: Client
) -> None:
    """No call was made, and the turn did not end: a file is kept with the words that tell of it."""
    look = tool("bash", {"command": "cat .footplate/uploads/*/a.txt"})
    slow = text("one two three four five six seven eight", chunks=8, delay=8)
    await cluster.model.install("look", replies(reply(look, first_attempts=[[slow]]), [text("Seen.")]))
    first, second = host(cluster, "a", "sandbox"), host(cluster, "b", "sandbox")
    made = await client.sdk.beta.files.upload(file=("a.txt", b"a.txt"))
    session_id = await client.session(await client.agent(extra_body={"harness": "native"}))
    document = {"type": "document", "source": {"type": "file", "file_id": made.id}, "deliver": "file"}
    event: Any = {"type": "user.message", "content": [{"type": "text", "text": "[[script:look]]"}, document]}
    await first.start()
    async with client.stream(session_id) as stream:
        await client.sdk.beta.sessions.events.send(session_id, events=[event])
        await stream.until("span.model_request_start", patience=120)
        await asyncio.sleep(1)
        await first.kill()
        await asyncio.to_thread(shutil.rmtree, data_of(cluster, "a"))
        await client.sdk.beta.files.delete(made.id)
        await second.start()
        try:
            assert said(await stream.until_idle(patience=120)) == ["a.txt"]
        finally:
            await second.stop()
