"""A session's files outlive the host on which they were created, in every harness."""

import asyncio
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from bench.support.worker_hosts import create_worker_host, lose_host

from footplate.client import AsyncFootplate
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.testing import Step, replies, reply, text, tool

pytestmark = [pytest.mark.timing, pytest.mark.timeout(900)]

NAMES = {"native": "bash", "claude": "Bash"}
ENTER = {"native": "; cd in; export TOKEN=secret", "claude": ""}
"""What a call leaves in the persistent shell. Claude Code has a shell of its own."""
SHOW_STATE = {"native": 'basename "$PWD"; echo $TOKEN; cd ..; cat ~/.mine; ', "claude": "cat ~/.mine; "}
STATE = {"native": "in\nsecret\nhome\n", "claude": "home\n"}
FAST = {"FOOTPLATE_LEASE": "8", "FOOTPLATE_HEARTBEAT_TIMEOUT": "12"}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="module")
async def one_worker(stack: Stack, projects: Path) -> AsyncIterator[Cluster]:
    environment = {"FOOTPLATE_PROJECTS_ROOT": str(projects)}
    async with open_cluster(workers=1, stack=stack, environment=environment) as cluster:
        yield cluster


def new_repository(projects: Path) -> Path:
    repository = Path(tempfile.mkdtemp(dir=projects))
    (repository / "file").write_text("one\n")
    (repository / "other").write_text("x\n")
    for command in ("init -q -b main", "add -A", "-c user.name=User -c user.email=u@example.com commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=repository, check=True)
    return repository


def tool_outputs(events: list[Event]) -> list[str]:
    results = [event for event in events if event["type"] == "agent.tool_result"]
    return ["".join(block["text"] for block in event["content"]).strip() for event in results]


def apply(patch: bytes, directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=directory, check=True)
    subprocess.run(["git", "apply"], cwd=directory, input=patch, check=True)


async def create_session(client: Client, harness: str, repository: Path | None) -> str:
    agent = await client.agent(extra_body={"harness": harness})
    if repository is None:
        return await client.session(agent)
    made = await client.sdk.post("/v1/projects", body={"path": repository.name}, cast_to=dict[str, Any])
    return await client.session(agent, extra_body={"project_ids": [made["id"]]})


class LostSession(ABC):
    """A session on a host that is lost with its disk, and continues on another."""

    def __init__(self, cluster: Cluster, client: Client, harness: str) -> None:
        self.cluster = cluster
        self.client = client
        self.harness = harness
        self.results: list[str] = []
        """The output of its tools, in order."""

    def bash(self, command: str) -> Step:
        return tool(NAMES[self.harness], {"command": command})

    @abstractmethod
    async def run_until_loss(self, stack: AsyncExitStack) -> None:
        """Runs until just before the host is lost."""

    @abstractmethod
    async def finish(self) -> None: ...


class LostDuringCall(LostSession):
    """The third call is running, and the two before it changed files."""

    def __init__(self, cluster: Cluster, client: Client, harness: str, repository: Path | None) -> None:
        super().__init__(cluster, client, harness)
        self._repository = repository
        self._seen: list[Event] = []

    async def run_until_loss(self, stack: AsyncExitStack) -> None:
        begin = "echo two > file"
        look = "cat file in/new link; ls -A | tr '\\n' ' '"
        if self._repository is not None:
            begin += " && git commit -qam second && echo staged > staged && git add staged"
            look += "; git log --format=%s; git status --porcelain"
        change = "mkdir in && printf kept > in/new && chmod +x in/new && ln -s in/new link && rm -f other"
        change += "; echo home > ~/.mine"
        enter, look = ENTER[self.harness], SHOW_STATE[self.harness] + look
        name = f"work-{self.harness}-{self._repository is not None}"
        await self.cluster.model.install(
            name,
            replies(
                [self.bash(f"{begin}; echo done")],
                [self.bash(f"{change}{enter}")],
                [self.bash("cd /tmp; echo lost > ~/lost; echo lost > lost; sleep 200")],
                [self.bash(look)],
                [text("Done.")],
            ),
        )
        session_id = await create_session(self.client, self.harness, self._repository)
        self._stream = await stack.enter_async_context(self.client.stream(session_id))
        await self.client.send_text(session_id, f"[[script:{name}]]")
        while sum(event["type"] == "agent.tool_use" for event in self._seen) < 3:
            self._seen += await self._stream.until("agent.tool_use", patience=120)
        await asyncio.sleep(0.5)

    async def finish(self) -> None:
        self.results = tool_outputs(self._seen + await self._stream.until_idle(patience=120))


class LostBetweenTurns(LostSession):
    """It received files and has used no tool yet: an uploaded file is stored with the message that names it."""

    async def run_until_loss(self, stack: AsyncExitStack) -> None:
        del stack
        client = self.client
        look = self.bash("cat .footplate/uploads/*/a.txt given/b.txt")
        await self.cluster.model.install("hear", replies([text("Heard.")]))
        await self.cluster.model.install(f"look-{self.harness}", replies([look], [text("Seen.")]))
        made = [await client.sdk.beta.files.upload(file=(name, name.encode())) for name in ("a.txt", "b.txt")]
        agent = await client.agent(extra_body={"harness": self.harness})
        mounted: Any = [{"type": "file", "file_id": made[1].id, "mount_path": "given/b.txt"}]
        self._session_id = await client.session(agent, resources=mounted)
        async with client.stream(self._session_id) as stream:
            await client.sdk.beta.sessions.events.send(
                self._session_id, events=[_with_file("[[script:hear]]", made[0].id)]
            )
            await stream.until_idle(patience=120)
        (turn,) = await client.list_turns(self._session_id)
        found: Any = await client.sdk.get(
            f"/v1/sessions/{self._session_id}/diff", cast_to=dict[str, Any], options={"params": {"turn_id": turn["id"]}}
        )
        assert found["trees"][0]["files"] == [], "what came with the message is not the turn's work"
        for file in made:
            await client.sdk.beta.files.delete(file.id)

    async def finish(self) -> None:
        turn = await self.client.run_turn(self._session_id, f"[[script:look-{self.harness}]]", patience=120)
        self.results = tool_outputs(turn)


class LostBeforeFirstCall(LostSession):
    """The model is responding and no call was made: a file is stored with the message that announces it."""

    async def run_until_loss(self, stack: AsyncExitStack) -> None:
        client = self.client
        look = self.bash("cat .footplate/uploads/*/a.txt")
        slow = text("one two three four five six seven eight", chunks=8, delay=8)
        await self.cluster.model.install("slow", replies(reply(look, first_attempts=[[slow]]), [text("Seen.")]))
        made = await client.sdk.beta.files.upload(file=("a.txt", b"a.txt"))
        session_id = await client.session(await client.agent(extra_body={"harness": self.harness}))
        self._stream = await stack.enter_async_context(client.stream(session_id))
        await client.sdk.beta.sessions.events.send(session_id, events=[_with_file("[[script:slow]]", made.id)])
        await self._stream.until("span.model_request_start", patience=120)
        await asyncio.sleep(1)
        await client.sdk.beta.files.delete(made.id)

    async def finish(self) -> None:
        self.results = tool_outputs(await self._stream.until_idle(patience=120))


def _with_file(prompt: str, file_id: str) -> Any:
    document = {"type": "document", "source": {"type": "file", "file_id": file_id}, "deliver": "file"}
    return {"type": "user.message", "content": [{"type": "text", "text": prompt}, document]}


@pytest.fixture(scope="module")
async def after_the_loss(stack: Stack, projects: Path) -> AsyncIterator[dict[str, list[str]]]:
    """The output of each session's tools. One host is lost under all sessions at once, and another continues them."""
    environment = {**FAST, "FOOTPLATE_PROJECTS_ROOT": str(projects)}
    async with AsyncExitStack() as exits:
        cluster = await exits.enter_async_context(open_cluster(workers=0, stack=stack, environment=environment))
        client = await exits.enter_async_context(Client(cluster))
        lost: dict[str, LostSession] = {}
        for harness in NAMES:
            lost[f"{harness} project"] = LostDuringCall(cluster, client, harness, new_repository(projects))
            lost[f"{harness} scratch"] = LostDuringCall(cluster, client, harness, None)
            lost[f"{harness} between"] = LostBetweenTurns(cluster, client, harness)
        first, second = create_worker_host(cluster, "a", "sandbox"), create_worker_host(cluster, "b", "sandbox")
        exits.push_async_callback(first.kill)
        exits.push_async_callback(second.kill)
        await first.start()
        await asyncio.gather(*(session.run_until_loss(exits) for session in lost.values()))
        # Last, because the model's slow response must not end before.
        lost["native answering"] = LostBeforeFirstCall(cluster, client, "native")
        await lost["native answering"].run_until_loss(exits)
        await lose_host(cluster, "a", first)
        await second.start()
        await asyncio.gather(*(session.finish() for session in lost.values()))
        await second.stop()
        yield {name: session.results for name, session in lost.items()}


@pytest.mark.requirement("K7")
@pytest.mark.parametrize("harness", NAMES)
@pytest.mark.parametrize("where", ["project", "scratch"])
async def test_another_host_finishes_the_turn_with_files_home_and_shell(
    after_the_loss: dict[str, list[str]], harness: str, where: str
) -> None:
    *_, unknown, last = after_the_loss[f"{harness} {where}"]
    assert "unknown" in unknown
    there = ".git file in link staged" if where == "project" else "file in link"
    state = "second\nfirst\n D other\nA  staged\n?? in/\n?? link" if where == "project" else ""
    assert last == f"{STATE[harness]}two\nkeptkept{there} {state}".strip()


@pytest.mark.parametrize("harness", NAMES)
async def test_a_file_attached_to_a_message_is_available_on_another_host(
    after_the_loss: dict[str, list[str]], harness: str
) -> None:
    assert after_the_loss[f"{harness} between"] == ["a.txtb.txt"]


async def test_an_announced_file_survives_an_immediate_loss_of_the_host(
    after_the_loss: dict[str, list[str]],
) -> None:
    assert after_the_loss["native answering"] == ["a.txt"]


@pytest.mark.requirement("K8")
@pytest.mark.requirement("R6")
@pytest.mark.parametrize("harness", ["native", "claude"])
async def test_messages_and_steps_name_files_of_a_project_and_urls(
    one_worker: Cluster, projects: Path, harness: str
) -> None:
    """The file is the one of the session's tree: the first step changes it."""
    cluster, name = one_worker, f"inputs-{harness}"
    repository = await asyncio.to_thread(new_repository, projects)
    await cluster.model.install(name, replies([text("Seen.")]))
    path = {"type": "path", "path": "file"}
    url = "http://93.184.216.34/picture.png"
    content = [
        {"type": "text", "text": f"[[script:{name}]]"},
        {"type": "file", "source": path},
        {"type": "document", "source": path},
        {"type": "image", "source": {"type": "url", "url": url}, "deliver": "url"},
    ]
    missing = {"type": "file", "source": {"type": "path", "path": "missing"}}
    async with Client(cluster) as sdk, AsyncFootplate(cluster.base_urls[0], cluster.key) as client:
        session_id = await create_session(sdk, harness, repository)
        changed, seen, failed = await client.steps.add(
            session_id,
            [
                {"kind": "shell", "command": "echo changed > file"},
                {"kind": "prompt", "content": content},
                {"kind": "prompt", "content": [content[0], missing]},
            ],
        )

        async def has_ended() -> bool:
            return (await client.steps.retrieve(session_id, failed.id)).state not in {"pending", "running"}

        assert await wait_until(has_ended, 120)
        assert (await client.steps.retrieve(session_id, changed.id)).state == "completed"
        assert (await client.steps.retrieve(session_id, seen.id)).state == "completed"
        result = (await client.steps.retrieve(session_id, failed.id)).result
        assert result is not None
        assert "The project has no readable file 'missing'" in str(result.error_message)
        (request,) = await cluster.model.requests(name)
    sent = str(request["body"])
    assert "The user refers to the file /workspace/file (8 bytes)" in sent
    assert "changed\\n" in sent
    assert f"'type': 'url', 'url': '{url}'" in sent


@pytest.mark.requirement("S4")
@pytest.mark.parametrize("with_project", [True, False])
@pytest.mark.parametrize("harness", ["native", "claude"])
async def test_a_fork_has_the_files_of_its_event_and_a_diff_shows_the_changes(
    one_worker: Cluster, projects: Path, tmp_path: Path, harness: str, *, with_project: bool
) -> None:
    cluster = one_worker
    repository = await asyncio.to_thread(new_repository, projects) if with_project else None

    def bash(command: str) -> Step:
        return tool(NAMES[harness], {"command": command})

    steps = [[bash(f"echo {n} > made-{n}; echo line {n} >> file; echo {n}")] for n in range(1, 4)]
    await cluster.model.install("work", replies(*steps, [text("Done.")]))
    await cluster.model.install("more", replies([bash("echo more > file; rm made-1; cat made-*")], [text("Done.")]))
    await cluster.model.install("look", replies([bash("ls -A | tr '\\n' ' '; cat file")], [text("Seen.")]))
    async with Client(cluster) as client:
        session_id = await create_session(client, harness, repository)
        events = await client.run_turn(session_id, "[[script:work]]", patience=120)
        results = [event["id"] for event in events if event["type"] == "agent.tool_result"]
        await client.run_turn(session_id, "[[script:more]]", patience=120)
        newest, first = [turn["id"] for turn in await client.list_turns(session_id)]

        fork = await client.sdk.post(
            f"/v1/sessions/{session_id}/fork", body={"at_event_id": results[1]}, cast_to=dict[str, Any]
        )
        (seen,) = tool_outputs(await client.run_turn(fork["id"], "[[script:look]]", patience=120))
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
            response = await client.http.get(
                f"{cluster.base_urls[0]}/v1/sessions/{session_id}/diff?format=patch",
                headers={"x-api-key": cluster.key},
            )
            assert response.status_code == 200, response.text
            return response.content

        whole = await patch()
        await asyncio.to_thread(shutil.move, cluster.directory / "data" / "trees", tmp_path / "gone")
        assert await patch() == whole, "from the object store alone it is the same"

        async def diffs_are_removed() -> bool:
            return not [*(cluster.directory / "data" / "diffs").iterdir()]

        assert await wait_until(diffs_are_removed, 10)
    directory = repository or tmp_path / "empty"
    await asyncio.to_thread(apply, whole, directory)
    assert ((directory / "file").read_text(), (directory / "made-3").read_text()) == ("more\n", "3\n")
