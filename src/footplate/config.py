"""Settings, read once at the edge: from the environment (`FOOTPLATE_…`), else the default.

Nothing below reads the environment by itself. Providers' own variables (`ANTHROPIC_API_KEY`, …) are read here too,
because people already have them set.
"""

import base64
import ipaddress
import os
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AliasChoices, BeforeValidator, ByteSize, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from footplate.domain.leases import HOLD
from footplate.domain.limits import RequestLimits
from footplate.domain.networks import Network, NetworkMode
from footplate.domain.projects import DEFAULT_ORGANISATION, OF_ORGANISATION

_BRAVE: Final = "https://api.search.brave.com/res/v1/web/search"
_REST: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms]?)")
_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SECRET_BYTES: Final = range(24, 65)
_ADVICE: Final = 'Make one with: echo "whsec_$(head -c 32 /dev/urandom | base64)"'


def default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "footplate"


def private_dirs() -> list[Path]:
    """Where the command line keeps keys and what it did last. Its own rule is in `cli.places`."""
    usual = {"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state"}
    return [Path(os.environ.get(name) or Path.home() / place) / "footplate" for name, place in usual.items()]


def _own(name: str) -> AliasChoices:
    """Ours first, then the provider's own variable."""
    return AliasChoices(f"footplate_{name}", name)


def _rest(value: object) -> object:
    """Days as a number, or a number with its unit. Nothing at all is no policy; zero would be one that nobody means."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    found = _REST.fullmatch(value.strip())
    rest = timedelta(seconds=float(found[1]) * _UNITS[found[2] or "d"]) if found else timedelta()
    if not rest:
        raise ValueError(
            f"{value!r} is no time. "
            "Write days as in 90, or a unit as in 90d, 12h, 30m, 45s; leave it out to keep every session as it is."
        )
    return rest


def _release(value: object) -> object:
    return None if value == "never" else _rest(value)


def _processors() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_network(entry: str) -> bool:
    try:
        ipaddress.ip_network(entry)
    except ValueError:
        return False
    return True


def _is_secret(text: str) -> bool:
    try:
        key = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except ValueError:
        return False
    return text.startswith("whsec_") and len(key) in _SECRET_BYTES


class Settings(BaseSettings, RequestLimits):
    # Keys are among the settings: what is wrong with one is told without their values.
    model_config = SettingsConfigDict(
        env_prefix="FOOTPLATE_", extra="ignore", populate_by_name=True, hide_input_in_errors=True
    )

    database_url: str = "postgresql://footplate@127.0.0.1:5432/footplate"
    redis_url: str = "redis://127.0.0.1:6379/0"
    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "default"
    task_queue: str = "footplate"

    data_dir: Path = Field(default_factory=default_data_dir)
    objects_url: str | None = None
    """Where large bodies go: `file:///…`, `s3://bucket/prefix`, …; a folder in `data_dir` when not set."""

    projects_root: str | None = None
    """Where projects lie that are named by a path, the same for api and workers. `{organisation}` in it stands for each
    one's own directory; without it, the root is the default organisation's. Not set: `projects` in `data_dir`."""
    git_seconds: float = Field(default=600.0, gt=0)
    """How long one fetch of a project may take."""
    git_bytes: ByteSize = Field(default=ByteSize(10 << 30), gt=0)
    """How much a host keeps of a project's repository at most, and how large the files of its commits may be."""
    branch_lease: float = Field(default=HOLD, gt=0)
    """How long a process that writes to a project's branch may be silent before another may write there."""
    snapshots: Literal["calls", "turns"] = "calls"
    """When files are kept off the host: with the result of each call, or at the end of each turn alone. The latter is
    quicker where commands are many and short, and a host that is lost takes the turn's files with it."""

    host: str = "127.0.0.1"
    allowed_hosts: str = ""
    """Names under which clients reach the api, besides loopback's and addresses: `footplate.example.com`; `*` is any.
    Others are refused: a web page may point its own name here."""
    allowed_origins: str = ""
    """Origins of web pages that may call the api besides its own: `https://app.example.com`. `*` is any."""
    port: int = 8700
    database_pool: int = 10
    ignore_unknown_fields: bool = False
    keepalive: float = 15.0

    named_directories: bool = False
    """Whether the default organisation's sessions may name any directory to work in: for a developer's own machine."""
    named_roots: dict[str, list[str]] = Field(default_factory=dict)
    """Below which directories the sessions of an organisation may name one, as JSON: `{"default": ["/srv/checkouts"]}`.
    Give it to api and workers alike."""
    environment: Literal["sandbox", "docker", "unsandboxed"] = "sandbox" if sys.platform == "linux" else "unsandboxed"
    """Where agents' commands run. A worker that cannot give what this says does not start. Give it, and the network,
    to api and workers alike: the api refuses environments that ask for more."""
    sandbox_network: NetworkMode = "none"
    """`allow` is a list of hosts; `open` is the worker's own network, its loopback included."""
    sandbox_allowed_hosts: str = ""
    """Of the mode `allow`, with commas between: `packages.example.com`, `*.example.org`, `git.example.com:8443`."""
    sandbox_memory: ByteSize = ByteSize(4 << 30)
    sandbox_pids: int = Field(default=1024, ge=16)
    sandbox_cpus: float = Field(default=2.0, gt=0)
    sandbox_disk: ByteSize = ByteSize(10 << 30)
    """What a session's own files may take."""
    sandbox_cgroups: Literal["wanted", "required"] = "wanted"
    """`wanted`: where a worker may not make control groups, memory is limited process by process."""
    sandbox_readable: str = ""
    """Further paths that commands may read, with commas between."""
    sandbox_uid: int = Field(default=65_520, ge=1)
    """Whom a root worker's commands run as. By default one that neither Debian nor systemd gives to anybody."""
    docker_host: Annotated[str, Field(validation_alias=_own("docker_host"))] = "unix:///var/run/docker.sock"
    """Where the docker engine of this machine listens. Limits of containers are those of the sandbox."""
    docker_image: str | None = None
    """What a turn's container is made of. The engine has to have it: nothing is pulled."""
    docker_images: str = ""
    """Further images that environments may name, with commas between."""
    docker_container: str | None = None
    """Instead: a container that runs already and that turns share. It is never stopped or removed."""
    docker_network: str = "none"
    """Of a turn's container: `none`, or the name of one of the engine's networks."""
    docker_setup: Path | None = None
    """A script that prepares the image, as root; its result is kept as long as image and script stay the same."""
    docker_setup_network: str = "bridge"
    """Of the setup script: it may have packages to install."""
    default_harness: str = "native"
    max_turns: int = 100
    """Turns that one worker runs at once."""
    kept_megabytes: int = Field(default=2, ge=0)
    """Of conversations, as JSON, that a worker keeps in memory: a session's next turn reads only what is new."""
    kept_sessions: int = Field(default=4, ge=0)
    """Sessions whose harness a worker keeps connected after a turn, to begin the next one sooner. One with Claude Code
    takes some 200 MB; native has nothing to keep."""
    subagent_hold: float = Field(default=120.0, ge=0, le=3000)
    """Seconds for which a call of a subagent of Claude Code waits for a person, in its process; it cannot be put away.
    Then it is denied. 0: at once."""
    kept_seconds: float = 300.0
    """How long one stays connected, and its conversation in memory, while nothing is asked of it."""
    slots: int = Field(default=2, ge=0)
    """New sessions whose harness a worker connects ahead of their first input; each is as large as a kept one. Give it
    to api and workers alike: with 0 the api asks for none."""
    slot_seconds: float = 60.0
    """How long one waits for that input."""
    starts: int = Field(default_factory=_processors, ge=1)
    """CLIs that a worker starts at once; as many as it has processors."""
    heartbeat_timeout: float = 10.0
    """A worker that the engine has not heard of for so long has lost its turns."""
    lease: float = 5.0
    """How long a worker's commands may live without word from it; always shorter than the heartbeat timeout."""
    linger: float = 300.0
    """How long an idle session's workflow stays open: its next turn starts sooner. It takes some 100 KB."""
    max_failures: int = 5
    """How often a turn is tried again after a temporary failure of the model's provider."""
    max_attempts: int = 20
    """How many workers a turn may outlive before it is held to be what kills them."""
    retry_wait: float = 1.0
    retry_wait_most: float = 60.0
    drain: float = 15.0
    """How long a worker that is told to stop lets tools and model requests go on that have begun. A turn is handed over
    when its own has ended; past this time it is cut off, and others take the turn up without knowing its outcome."""
    sweep_interval: float = 10.0
    retention: Annotated[timedelta | None, BeforeValidator(_rest)] = None
    """How long a session rests before its log becomes one object: days, or `12h`, `30m`; not set: it stays as it is."""
    retention_trees: Annotated[timedelta | None, BeforeValidator(_release)] = timedelta(days=7)
    """How long a session rests before its host lets go of its files, which the object store has; or `never`."""
    retention_delete: Annotated[timedelta | None, BeforeValidator(_rest)] = None
    """How long a session rests before it is deleted, as on request; not set: none is, but on request."""
    gc_grace: Annotated[timedelta, BeforeValidator(_rest), Field(ge=timedelta(hours=1))] = timedelta(days=1)
    """How long ago an object was written at least that is removed because nobody needs it. Longer than any upload
    takes, with all its tries, until the log has it."""

    anthropic_api_key: Annotated[SecretStr | None, Field(validation_alias=_own("anthropic_api_key"))] = None
    anthropic_base_url: Annotated[str | None, Field(validation_alias=_own("anthropic_base_url"))] = None
    openai_api_key: Annotated[SecretStr | None, Field(validation_alias=_own("openai_api_key"))] = None
    openai_base_url: Annotated[str | None, Field(validation_alias=_own("openai_base_url"))] = None

    metrics_address: str | None = None
    """Where `/metrics` is served, as host:port, or a port alone on loopback; `off`: nowhere. Not set: an api serves it
    on loopback, port 8701, if that is free; a worker does not serve it."""
    metrics_token: SecretStr | None = None
    """What `/metrics` asks for, as a bearer token; `open`: nothing. Not set: the content of `metrics-token` in the data
    directory, which the first process makes."""
    otlp_endpoint: Annotated[
        str | None,
        Field(validation_alias=AliasChoices("otel_exporter_otlp_traces_endpoint", "otel_exporter_otlp_endpoint")),
    ] = None
    """OpenTelemetry's own variables: traces are on if one is set. The library reads it, and the others, by itself."""
    otel_sdk_disabled: Annotated[bool, Field(validation_alias="otel_sdk_disabled")] = False
    sentry_dsn: Annotated[SecretStr | None, Field(validation_alias=_own("sentry_dsn"))] = None

    web_allow: str = ""
    """Internal hosts, addresses and networks that web_fetch may reach all the same, and sandboxes with an allow-list
    that names them; with commas between."""
    web_fetch_bytes: int = Field(default=5_000_000, ge=1)
    """How much of one page is read at most."""
    file_bytes: int = Field(default=64_000_000, ge=1)
    """How large a file may be that is uploaded, or fetched because an input names its URL. Give it to api and workers
    alike."""
    web_fetch_seconds: float = Field(default=30.0, gt=0)
    """How long one page or one search may take."""
    mcp_allow: str = ""
    """Internal hosts, addresses and networks that agents' MCP servers may be at all the same; with commas between."""
    mcp_call_seconds: float = Field(default=600.0, gt=0)
    """How long one call of an MCP tool may take."""
    hook_hosts: str = ""
    """Where hooks may be asked by HTTP, with commas between: `hooks.example.com`, `*.example.org`, `checks:8443`; not
    set: nowhere. Give it to api and workers alike: the api refuses hooks at other hosts."""
    hook_secret: SecretStr | None = None
    """What those requests are signed with: `whsec_` and 24 to 64 bytes in base64, as of Standard Webhooks."""
    hook_memory: ByteSize = ByteSize(512 << 20)
    """What the process of a Python hook may have."""
    search_provider: Literal["searxng", "brave"] | None = None
    """Who answers web_search. Give it to api and workers alike: without one the api refuses agents that want it."""
    search_url: str | None = None
    """Where SearXNG is; of Brave, another address than its own."""
    search_api_key: SecretStr | None = None

    @property
    def directory_roots(self) -> dict[str, list[str]]:
        """By organisation. Empty: no session may name a directory."""
        anywhere = {DEFAULT_ORGANISATION: ["/"]} if self.named_directories else {}
        return {**anywhere, **self.named_roots}

    @property
    def projects_place(self) -> str:
        return self.projects_root or f"{self.data_dir.resolve()}/projects/{OF_ORGANISATION}"

    @property
    def request_limits(self) -> RequestLimits:
        return RequestLimits(**self.model_dump(include=set(RequestLimits.model_fields)))

    @property
    def web_allowed(self) -> tuple[str, ...]:
        return tuple(entry.strip() for entry in self.web_allow.split(",") if entry.strip())

    @property
    def mcp_allowed(self) -> tuple[str, ...]:
        return tuple(entry.strip() for entry in self.mcp_allow.split(",") if entry.strip())

    @property
    def hook_network(self) -> Network:
        return Network.allow([entry for entry in self.hook_hosts.split(",") if entry.strip()])

    @property
    def sandbox_readable_paths(self) -> tuple[str, ...]:
        return tuple(entry.strip() for entry in self.sandbox_readable.split(",") if entry.strip())

    @property
    def network(self) -> Network:
        """What agents' commands may reach, unless their environment says otherwise."""
        entries = [entry for entry in self.sandbox_allowed_hosts.split(",") if entry.strip()]
        return Network.allow(entries) if self.sandbox_network == "allow" else Network(self.sandbox_network)

    @property
    def search_address(self) -> str:
        return self.search_url or _BRAVE

    @model_validator(mode="after")
    def _named_roots_are_absolute(self) -> "Settings":
        for root in (root for roots in self.named_roots.values() for root in roots):
            if not root.startswith("/") or ".." in root.split("/"):
                raise ValueError(f"FOOTPLATE_NAMED_ROOTS has {root!r}, which is not an absolute path without `..`.")
        return self

    @model_validator(mode="after")
    def _projects_root_is_absolute(self) -> "Settings":
        if self.projects_root is not None and (
            not self.projects_root.startswith("/") or ".." in self.projects_root.split("/")
        ):
            raise ValueError(
                f"FOOTPLATE_PROJECTS_ROOT is {self.projects_root!r}. Write an absolute path, as in: /srv/projects, "
                f"or /srv/projects/{OF_ORGANISATION} where there is more than one organisation."
            )
        return self

    @model_validator(mode="after")
    def _search_is_whole(self) -> "Settings":
        if self.search_provider == "searxng" and not self.search_url:
            raise ValueError("FOOTPLATE_SEARCH_PROVIDER=searxng needs FOOTPLATE_SEARCH_URL: where your SearXNG is.")
        if self.search_provider == "brave" and self.search_api_key is None:
            raise ValueError("FOOTPLATE_SEARCH_PROVIDER=brave needs FOOTPLATE_SEARCH_API_KEY: a key of Brave Search.")
        return self

    @model_validator(mode="after")
    def _allowed_can_be_read(self) -> "Settings":
        for name, entries in (("WEB", self.web_allowed), ("MCP", self.mcp_allowed)):
            for entry in entries:
                if not _is_network(entry) and not _HOST.fullmatch(entry):
                    raise ValueError(
                        f"FOOTPLATE_{name}_ALLOW has {entry!r}, which is no host name, address or network. "
                        "Write it as in: wiki.internal, 10.1.2.3, 10.1.0.0/16."
                    )
        return self

    @model_validator(mode="after")
    def _hooks_can_be_asked(self) -> "Settings":
        try:
            hosts = self.hook_network.hosts
        except ValueError as error:
            raise ValueError(f"FOOTPLATE_HOOK_HOSTS: {error}") from None
        if hosts and self.hook_secret is None:
            raise ValueError(f"FOOTPLATE_HOOK_HOSTS needs FOOTPLATE_HOOK_SECRET. {_ADVICE}")
        if self.hook_secret is not None and not _is_secret(self.hook_secret.get_secret_value()):
            raise ValueError(f"FOOTPLATE_HOOK_SECRET cannot be read. {_ADVICE}")
        return self

    @model_validator(mode="after")
    def _network_is_whole(self) -> "Settings":
        if (self.sandbox_network == "allow") != bool(self.sandbox_allowed_hosts.strip(" ,")):
            raise ValueError(
                "FOOTPLATE_SANDBOX_NETWORK=allow and FOOTPLATE_SANDBOX_ALLOWED_HOSTS go together: give both, "
                "as in FOOTPLATE_SANDBOX_ALLOWED_HOSTS=packages.example.com,*.example.org, or neither."
            )
        try:
            _ = self.network
        except ValueError as error:
            raise ValueError(f"FOOTPLATE_SANDBOX_ALLOWED_HOSTS: {error}") from None
        return self

    @model_validator(mode="after")
    def _readable_are_there(self) -> "Settings":
        for path in self.sandbox_readable_paths:
            if not Path(path).is_absolute() or not Path(path).is_dir():
                raise ValueError(
                    f"FOOTPLATE_SANDBOX_READABLE has {path!r}, which is no directory on this machine. "
                    "Write absolute paths with commas between, as in: /opt,/srv/tools."
                )
        return self

    @property
    def docker_image_names(self) -> list[str]:
        """All that environments may name."""
        return [name.strip() for name in f"{self.docker_image or ''},{self.docker_images}".split(",") if name.strip()]

    @model_validator(mode="after")
    def _docker_is_whole(self) -> "Settings":
        if self.environment != "docker":
            return self
        if bool(self.docker_image) == bool(self.docker_container):
            raise ValueError(
                "FOOTPLATE_ENVIRONMENT=docker needs FOOTPLATE_DOCKER_IMAGE, what a turn's container is made of, "
                "or FOOTPLATE_DOCKER_CONTAINER, the name of one that runs; not both."
            )
        if not self.docker_host.startswith("unix://"):
            raise ValueError(
                f"FOOTPLATE_DOCKER_HOST (or DOCKER_HOST) is {self.docker_host!r}. The engine has to be on the worker's "
                "own machine, where the sessions' files are: write its socket as in unix:///var/run/docker.sock."
            )
        if self.docker_setup is not None and not self.docker_setup.is_file():
            raise ValueError(f"FOOTPLATE_DOCKER_SETUP is {str(self.docker_setup)!r}, which is no file on this machine.")
        return self

    @model_validator(mode="after")
    def _lease_is_shorter(self) -> "Settings":
        if self.lease >= self.heartbeat_timeout:
            raise ValueError(
                "FOOTPLATE_LEASE must be shorter than FOOTPLATE_HEARTBEAT_TIMEOUT: "
                "a lost worker's commands have to be dead before another worker takes over."
            )
        return self
