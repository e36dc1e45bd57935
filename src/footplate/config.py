"""The settings, read once at the start from environment variables (`FOOTPLATE_…`) and a settings file.

No other module reads settings from the environment. Providers' own variables (`ANTHROPIC_API_KEY`, …) are also read
here, because users often have them set already.
"""

import base64
import ipaddress
import os
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic import AliasChoices, BeforeValidator, ByteSize, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from footplate.domain.agents.environment_config import BackendName
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.command_network_access import Network, NetworkMode
from footplate.domain.network.request_limits import RequestLimits
from footplate.domain.organisations.limits import LimitName, LimitValues
from footplate.domain.organisations.single_sign_on import GroupGrant, GroupMapping
from footplate.domain.organisations.webhooks import WebhookAccess
from footplate.domain.projects.project import DEFAULT_ORGANISATION, ORGANISATION_PLACEHOLDER
from footplate.domain.projects.write_leases import LEASE_SECONDS
from footplate.settings_sources import SETTINGS_FILE, EnvironmentSource, load_settings_file
from footplate.vapid_key import parse_vapid_key

_BRAVE_URL: Final = "https://api.search.brave.com/res/v1/web/search"
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms]?)")
_UNIT_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_HOST_PATTERN: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_NO_CONTACT: Final = "https://localhost"
_SECRET_BYTES: Final = range(24, 65)
_SIGNING_KEY_ADVICE: Final = 'Create one with: echo "whsec_$(head -c 32 /dev/urandom | base64)"'


def default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "footplate"


def private_dirs() -> list[Path]:
    """Return the directories in which the command line stores its keys and state, by the same rule as there."""
    default_directories = {"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state"}
    return [
        Path(os.environ.get(name) or Path.home() / place) / "footplate" for name, place in default_directories.items()
    ]


def _with_provider_alias(name: str) -> AliasChoices:
    """Return the names of a variable: Footplate's own first, then the provider's."""
    return AliasChoices(f"footplate_{name}", name)


def _parse_duration(value: object) -> object:
    """Parse a duration: a number of days, or a number with a unit. Empty means no policy. Zero is refused, as it is
    surely a mistake.
    """
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    found = _DURATION.fullmatch(value.strip())
    duration = timedelta(seconds=float(found[1]) * _UNIT_SECONDS[found[2] or "d"]) if found else timedelta()
    if not duration:
        raise ValueError(
            f"{value!r} is not a valid duration. "
            "Use a number of days, such as 90, or a number with a unit, such as 90d, 12h, 30m or 45s. "
            "Leave the setting empty to disable it."
        )
    return duration


def _parse_duration_or_never(value: object) -> object:
    return None if value == "never" else _parse_duration(value)


def _count_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _parse_server_address(text: str) -> str | None:
    """Return the address as browsers write it in `Host` and `Origin`: in lower case and without the default port. None:
    it is not an address of a server, or has more than that.
    """
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return None
    if url.scheme not in _DEFAULT_PORTS or not url.hostname or url.username is not None:
        return None
    if url.path.strip("/") or url.query or url.fragment:
        return None
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return f"{url.scheme}://{host}" if port in {None, _DEFAULT_PORTS[url.scheme]} else f"{url.scheme}://{host}:{port}"


def _is_network(entry: str) -> bool:
    try:
        ipaddress.ip_network(entry)
    except ValueError:
        return False
    return True


def _is_webhook_secret(text: str) -> bool:
    try:
        key = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except ValueError:
        return False
    return text.startswith("whsec_") and len(key) in _SECRET_BYTES


class Settings(BaseSettings, RequestLimits):
    # Some settings are secrets, so validation errors must not show values.
    model_config = SettingsConfigDict(
        env_prefix="FOOTPLATE_", extra="ignore", populate_by_name=True, hide_input_in_errors=True
    )

    database_url: str = "postgresql://footplate@127.0.0.1:5432/footplate"
    redis_url: str = "redis://127.0.0.1:6379/0"
    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "default"
    temporal_tls: bool = False
    """Whether to connect to Temporal with TLS. An API key or one of the following files turns it on."""
    temporal_tls_ca: Path | None = None
    """The certificates of the authorities that may sign the server's certificate. Default: those of the system."""
    temporal_tls_certificate: Path | None = None
    """The client certificate, for mutual TLS."""
    temporal_tls_key: Path | None = None
    """The private key of the client certificate."""
    temporal_tls_name: str | None = None
    """The name in the server's certificate, if it is not the host of `temporal_address`."""
    temporal_api_key: SecretStr | None = None
    """The API key, for Temporal Cloud."""
    task_queue: str = "footplate"

    data_dir: Path = Field(default_factory=default_data_dir)
    objects_url: str | None = None
    """The object store: `file:///…`, `s3://bucket/prefix`, …. Default: a folder in `data_dir`."""

    projects_root: str | None = None
    """Root directory of projects that have a path. The API and the workers must have the same value. `{organisation}`
    in it stands for each organisation's own directory; without it, the root belongs to the default organisation.
    Default: `projects` in `data_dir`."""
    git_seconds: float = Field(default=600.0, gt=0)
    """Time limit for one fetch of a project."""
    setup_seconds: float = Field(default=600.0, gt=0)
    """Time limit for the setup command of a project."""
    include_bytes: ByteSize = Field(default=ByteSize(64 << 20), ge=ByteSize(0))
    """Maximum size of the ignored files that a project's `.worktreeinclude` copies into a session's tree. 0: none."""
    cache_bytes: ByteSize = Field(default=ByteSize(2 << 30), ge=ByteSize(0))
    """Maximum size of the ignored directories that a setup leaves and that are cached. 0: nothing is cached."""
    cache_project_bytes: ByteSize = Field(default=ByteSize(10 << 30), ge=ByteSize(0))
    """Maximum size of all caches of a project in the object store, compressed."""
    cache_host_bytes: ByteSize = Field(default=ByteSize(20 << 30), ge=ByteSize(0))
    """Maximum size of the caches that a worker keeps on its disk, compressed."""
    cache_seconds: float = Field(default=120.0, gt=0)
    """Time limit for restoring or storing a cache."""
    git_bytes: ByteSize = Field(default=ByteSize(10 << 30), gt=ByteSize(0))
    """Size limit of a project's repository on a host, and of the files in its commits."""
    branch_lease: float = Field(default=LEASE_SECONDS, gt=0)
    """Seconds after which the lease of a process that writes to a project's branch expires, unless it is renewed."""
    snapshots: Literal["calls", "turns"] = "calls"
    """When files are uploaded to the object store: with the result of each call, or only at the end of each turn. The
    latter is faster with many short commands, but if the host is lost, the turn's files are lost with it."""

    host: str = "127.0.0.1"
    allowed_hosts: str = ""
    """Host names of the API in addition to loopback names and addresses: `footplate.example.com`, or `*` for any. Other
    names are refused, because a web page could point its own name at this server."""
    allowed_origins: str = ""
    """Origins of web pages that may call the API in addition to its own: `https://app.example.com`, or `*` for any."""
    public_url: str | None = None
    """The address of the server for browsers and in links: `https://footplate.example.com`. Its host name is accepted
    like those of `allowed_hosts`. Default: the address of the request."""
    browser_session_lifetime: Annotated[timedelta, BeforeValidator(_parse_duration), Field(gt=timedelta(0))] = (
        timedelta(days=7)
    )
    """How long a browser stays signed in at most: days, or `12h`, `30m`."""
    browser_session_idle: Annotated[timedelta, BeforeValidator(_parse_duration), Field(ge=timedelta(minutes=5))] = (
        timedelta(hours=12)
    )
    """How long a browser stays signed in that is not used. At least 5 minutes."""
    oidc_issuer: str | None = None
    """The issuer of the identity provider through which people sign in: `https://login.example.com`. It needs
    `oidc_client_id` and `public_url`."""
    oidc_client_id: str | None = None
    oidc_client_secret: SecretStr | None = None
    oidc_name: str = "Single sign-on"
    """The name of the identity provider on the sign-in page."""
    oidc_scopes: str = "openid profile email"
    oidc_groups_claim: str = "groups"
    """The claim with the groups of a person."""
    oidc_groups: dict[str, dict[Literal["roles", "teams"], list[str]]] = Field(default_factory=dict)
    """The roles and teams that groups give, as JSON: `{"engineering": {"roles": ["member"], "teams": ["web"]}}`."""
    oidc_default_roles: str = ""
    """Roles of everyone who can sign in, separated by commas. Default: a group has to give one."""
    oidc_first_admin: str | None = None
    """The verified email of the person who gets the role `admin` while the organisation has no administrator."""
    oidc_organisation: str = DEFAULT_ORGANISATION
    """The organisation of the people who sign in through the identity provider."""
    oidc_clock_skew: float = Field(default=60.0, ge=0, le=600)
    """Seconds that the clock of the identity provider may differ from this one's."""
    login_key_lifetime: Annotated[timedelta, BeforeValidator(_parse_duration), Field(gt=timedelta(0))] = timedelta(
        days=30
    )
    """How long an API key works that `footplate login` creates."""
    sign_in_failures: int = Field(default=20, ge=1)
    """Attempts to sign in that may fail from one client address in a minute."""
    port: int = 8700
    database_pool: int = 10
    database_pooler: Literal["none", "transaction"] = "none"
    """`transaction`: the connections go through a pooler in transaction mode, such as pgbouncer."""
    ignore_unknown_fields: bool = False
    keepalive: float = 15.0

    organisation_limits: dict[Literal["organisation", "each_member"], dict[LimitName, Annotated[int, Field(ge=0)]]] = (
        Field(default_factory=dict)
    )
    """Limits of every organisation and of each of its members, as JSON: `{"organisation": {"concurrent_turns": 50}}`.
    The API and the workers must have the same value. Default: no limits."""
    named_directories: bool = False
    """Whether sessions of the default organisation may work in any directory. For a developer's own machine."""
    named_roots: dict[str, list[str]] = Field(default_factory=dict)
    """Directories below which the sessions of an organisation may work, as JSON: `{"default": ["/srv/checkouts"]}`. The
    API and the workers must have the same value."""
    environment: BackendName = "sandbox" if sys.platform == "linux" else "unsandboxed"
    """Where agents' commands run. A worker that does not support it does not start. The API and the workers must have
    the same environment and network settings, because the API refuses environments that request more."""
    backends: str = ""
    """All backends that sessions may choose, separated by commas: `sandbox,docker`. `environment` is the default of
    sessions that choose none. Default: only that one."""
    sandbox_network: NetworkMode = "none"
    """`none`: no network. `allow`: a list of hosts. `open`: the worker's own network, including its loopback."""
    sandbox_allowed_hosts: str = ""
    """Hosts for the mode `allow`, separated by commas: `packages.example.com`, `*.example.org`,
    `git.example.com:8443`."""
    sandbox_memory: ByteSize = ByteSize(4 << 30)
    sandbox_pids: int = Field(default=1024, ge=16)
    sandbox_cpus: float = Field(default=2.0, gt=0)
    sandbox_disk: ByteSize = ByteSize(10 << 30)
    """Disk limit for a session's own files."""
    sandbox_cgroups: Literal["wanted", "required"] = "wanted"
    """`wanted`: if the worker cannot create control groups, memory is limited per process."""
    sandbox_readable: str = ""
    """Additional paths that commands may read, separated by commas."""
    sandbox_uid: int = Field(default=65_520, ge=1)
    """The user id of commands if the worker runs as root. The default is an id that Debian and systemd do not
    assign."""
    docker_host: Annotated[str, Field(validation_alias=_with_provider_alias("docker_host"))] = (
        "unix:///var/run/docker.sock"
    )
    """The socket of this machine's Docker engine. Containers have the same limits as the sandbox."""
    docker_image: str | None = None
    """The image of a turn's container. The engine must already have it; nothing is pulled."""
    docker_images: str = ""
    """Additional images that environments may select, separated by commas."""
    docker_container: str | None = None
    """Alternative to an image: a running container that all turns share. It is never stopped or removed."""
    docker_network: str = "none"
    """The network of a turn's container: `none`, or the name of a Docker network."""
    docker_setup: Path | None = None
    """A script that prepares the image, as root. The result is cached until the image or the script changes."""
    docker_setup_network: str = "bridge"
    """The network of the setup script, which may have to install packages."""
    default_harness: str = "native"
    max_turns: int = 100
    """Maximum number of concurrent turns of one worker."""
    kept_megabytes: int = Field(default=2, ge=0)
    """Size of a worker's conversation cache, in megabytes of JSON. A session's next turn reads only the new entries."""
    kept_sessions: int = Field(default=4, ge=0)
    """Maximum number of sessions whose harness process a worker keeps warm after a turn, so that the next turn starts
    faster. A Claude Code process takes about 200 MB; `native` has no process."""
    subagent_hold: float = Field(default=120.0, ge=0, le=3000)
    """Seconds that a call of a Claude Code subagent waits for approval in its process, because it cannot be parked.
    Then the call is denied. 0: denied immediately."""
    kept_seconds: float = 300.0
    """How long an idle session's process stays warm and its conversation stays cached."""
    slots: int = Field(default=2, ge=0)
    """Maximum number of new sessions whose harness process a worker starts before their first input. Each takes as much
    memory as a warm one. The API and the workers must have the same value; 0 turns it off."""
    slot_seconds: float = 60.0
    """How long such a process waits for the first input."""
    starts: int = Field(default_factory=_count_processors, ge=1)
    """How many CLI processes a worker starts at the same time. Default: the number of processors."""
    heartbeat_timeout: float = 10.0
    """Seconds without a heartbeat after which a worker loses its turns."""
    lease: float = 5.0
    """Seconds that commands may outlive contact with their worker. Must be shorter than the heartbeat timeout."""
    linger: float = 300.0
    """How long an idle session's workflow stays open, so that its next turn starts faster. It takes about 100 KB."""
    max_failures: int = 5
    """How often a turn is retried after temporary failures of the model provider."""
    max_attempts: int = 20
    """How many workers may be lost while they run a turn, before the turn is assumed to be the cause and fails."""
    child_depth: int = Field(default=3, ge=1, le=10)
    """How many levels of child sessions there may be below a session."""
    child_sessions: int = Field(default=100, ge=1)
    """How many sessions below a root session may exist that have not ended."""
    retry_wait: float = 1.0
    retry_wait_most: float = 60.0
    drain: float = 15.0
    """How long a stopping worker waits for running tools and model requests. A turn is handed over when its own one has
    ended. After this time it is cancelled, and another worker continues the turn without knowing the outcome."""
    sweep_interval: float = 10.0
    retention: Annotated[timedelta | None, BeforeValidator(_parse_duration)] = None
    """Idle time after which a session's log is archived as one object: days, or `12h`, `30m`. Default: never."""
    retention_trees: Annotated[timedelta | None, BeforeValidator(_parse_duration_or_never)] = timedelta(days=7)
    """Idle time after which a session's files are removed from the host; the object store still has them. Or
    `never`."""
    retention_end: Annotated[timedelta | None, BeforeValidator(_parse_duration)] = None
    """Idle time after which a session ends, with the outcome `expired`. Default: never."""
    retention_delete: Annotated[timedelta | None, BeforeValidator(_parse_duration)] = None
    """Idle time after which a session is deleted. Default: sessions are only deleted on request."""
    retention_feed: Annotated[timedelta, BeforeValidator(_parse_duration)] = timedelta(days=7)
    """How long a client can resume the feed of its organisation: older changes are deleted from the feed."""
    retention_runs: Annotated[
        timedelta | None, BeforeValidator(_parse_duration_or_never), Field(ge=timedelta(days=32))
    ] = timedelta(days=90)
    """How long the runs of schedules are stored, or `never` to store all. Longer than every catch-up window: a run is
    also the record that its time has started a session."""
    retention_caches: Annotated[timedelta, BeforeValidator(_parse_duration), Field(ge=timedelta(hours=1))] = timedelta(
        days=30
    )
    """Caches of projects that were not used for so long are deleted."""
    gc_grace: Annotated[timedelta, BeforeValidator(_parse_duration), Field(ge=timedelta(hours=1))] = timedelta(days=1)
    """Minimum age of an unneeded object before it is removed. It must be longer than any upload takes, including
    retries, until the log refers to it."""

    anthropic_api_key: Annotated[
        SecretStr | None, Field(validation_alias=_with_provider_alias("anthropic_api_key"))
    ] = None
    anthropic_base_url: Annotated[str | None, Field(validation_alias=_with_provider_alias("anthropic_base_url"))] = None
    openai_api_key: Annotated[SecretStr | None, Field(validation_alias=_with_provider_alias("openai_api_key"))] = None
    openai_base_url: Annotated[str | None, Field(validation_alias=_with_provider_alias("openai_base_url"))] = None
    model_connections: Path | None = None
    """A TOML file with further connections to model providers. The API and the workers must have the same connections;
    only workers read the keys."""

    metrics_address: str | None = None
    """The address of `/metrics`: host:port, a port on loopback, or `off`. Default: the API serves it on loopback, port
    8701, if that is free; a worker does not serve it."""
    metrics_token: SecretStr | None = None
    """The bearer token that `/metrics` requires; `open`: none. Default: the content of `metrics-token` in the data
    directory, which the first process creates."""
    otlp_endpoint: Annotated[
        str | None,
        Field(validation_alias=AliasChoices("otel_exporter_otlp_traces_endpoint", "otel_exporter_otlp_endpoint")),
    ] = None
    """OpenTelemetry's own variables. Traces are on if one is set. The library reads it and the other variables
    itself."""
    otel_sdk_disabled: Annotated[bool, Field(validation_alias="otel_sdk_disabled")] = False
    sentry_dsn: Annotated[SecretStr | None, Field(validation_alias=_with_provider_alias("sentry_dsn"))] = None

    web_allow: str = ""
    """Internal hosts, addresses and networks that web_fetch may reach, and sandboxes whose allow-list names them.
    Separated by commas."""
    web_fetch_bytes: int = Field(default=5_000_000, ge=1)
    """Maximum bytes that are read of one page."""
    file_bytes: int = Field(default=64_000_000, ge=1)
    """Maximum size of an uploaded file, and of a file that is fetched from a URL in an input. The API and the workers
    must have the same value."""
    output_files: int = Field(default=1000, ge=1)
    """Maximum number of outputs of a session."""
    output_bytes: int = Field(default=1_000_000_000, ge=1)
    """Maximum size of all outputs of a session together."""
    home_bytes: ByteSize = Field(default=ByteSize(256 << 20), ge=ByteSize(0))
    """Maximum size of a session's `HOME` that other hosts restore, without caches. 0: it is not stored."""
    web_fetch_seconds: float = Field(default=30.0, gt=0)
    """Time limit for one page or one search."""
    mcp_allow: str = ""
    """Internal hosts, addresses and networks at which MCP servers may be called. Separated by commas."""
    mcp_call_seconds: float = Field(default=600.0, gt=0)
    """Time limit for one call of an MCP tool."""
    hook_hosts: str = ""
    """Hosts at which HTTP hooks may be called, separated by commas: `hooks.example.com`, `*.example.org`,
    `checks:8443`. Default: none. The API and the workers must have the same value, because the API refuses hooks at
    other hosts."""
    hook_secret: SecretStr | None = None
    """The signing secret for requests to HTTP hooks: `whsec_` and 24 to 64 bytes in base64, as in Standard Webhooks."""
    hook_memory: ByteSize = ByteSize(512 << 20)
    """Memory limit of a Python hook's process."""
    webhook_allow: str = ""
    """Internal hosts, addresses and networks at which webhook endpoints may be. Separated by commas. The API and the
    workers must have the same value."""
    webhook_http: bool = False
    """Whether the URL of a webhook endpoint may start with `http://`. The API and the workers must have the same
    value."""
    webhook_seconds: float = Field(default=15.0, gt=0, le=60)
    """Time limit for one request to a webhook endpoint."""
    webhook_retry_wait: float = Field(default=5.0, gt=0)
    """Seconds between the first two attempts of a delivery. Each further wait is four times as long, up to 4 hours."""
    push_private_key: SecretStr | None = None
    """The private key with which notifications are signed: 32 bytes in base64url. The API and the workers must have the
    same value. Default: the server creates one and stores it in the database."""
    push_contact: str | None = None
    """How the operator of a push service can reach you: `mailto:you@example.com`, or an `https://` URL. Default:
    `public_url`, if it starts with `https://`."""
    session_link: str | None = None
    """The address of a session in messages for people, with `{session_id}`. Default: messages have no link."""
    search_provider: Literal["searxng", "brave"] | None = None
    """The search engine behind web_search. The API and the workers must have the same value; without one, the API
    refuses agents that use web_search."""
    search_url: str | None = None
    """The address of SearXNG, or an alternative address for Brave."""
    search_api_key: SecretStr | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - replaced by one that knows more names
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - files of this kind are not read
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - variables name the files with secrets
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Returns the sources, the strongest first."""
        path = os.environ.get(SETTINGS_FILE)
        from_file = load_settings_file(Path(path), settings_cls.model_fields) if path else {}
        return init_settings, EnvironmentSource(settings_cls), InitSettingsSource(settings_cls, from_file)

    @property
    def default_limits(self) -> LimitValues:
        return {
            (name, scope): value for scope, found in self.organisation_limits.items() for name, value in found.items()
        }

    @property
    def api_hosts(self) -> str:
        """The host names of the API, with the one of its public address."""
        name = urlsplit(self.public_url or "").hostname
        return f"{self.allowed_hosts},{name}" if name else self.allowed_hosts

    @property
    def group_mapping(self) -> GroupMapping:
        grants = {
            group: GroupGrant(frozenset(grant.get("roles", ())), frozenset(grant.get("teams", ())))
            for group, grant in self.oidc_groups.items()
        }
        default_roles = frozenset(role.strip() for role in self.oidc_default_roles.split(",") if role.strip())
        return GroupMapping(grants, default_roles, self.oidc_first_admin)

    @property
    def allowed_directory_roots(self) -> dict[str, list[str]]:
        """The allowed root directories by organisation. Empty: sessions cannot name a directory."""
        anywhere = {DEFAULT_ORGANISATION: ["/"]} if self.named_directories else {}
        return {**anywhere, **self.named_roots}

    @property
    def resolved_projects_root(self) -> str:
        return self.projects_root or f"{self.data_dir.resolve()}/projects/{ORGANISATION_PLACEHOLDER}"

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
    def webhook_access(self) -> WebhookAccess:
        return WebhookAccess(AddressPolicy(self.webhook_allowed), allow_http=self.webhook_http)

    @property
    def push_key(self) -> str | None:
        return None if self.push_private_key is None else self.push_private_key.get_secret_value()

    @property
    def push_sender_contact(self) -> str:
        """Push services require a contact. Some accept one that does not exist, and Apple's does not."""
        if self.push_contact is not None:
            return self.push_contact
        is_public = self.public_url is not None and self.public_url.startswith("https://")
        return str(self.public_url) if is_public else _NO_CONTACT

    @property
    def webhook_allowed(self) -> tuple[str, ...]:
        return tuple(entry.strip() for entry in self.webhook_allow.split(",") if entry.strip())

    @property
    def hook_network(self) -> Network:
        return Network.allow([entry for entry in self.hook_hosts.split(",") if entry.strip()])

    @property
    def sandbox_readable_paths(self) -> tuple[str, ...]:
        return tuple(entry.strip() for entry in self.sandbox_readable.split(",") if entry.strip())

    @property
    def network(self) -> Network:
        """The network of agents' commands, unless their environment narrows it."""
        entries = [entry for entry in self.sandbox_allowed_hosts.split(",") if entry.strip()]
        return Network.allow(entries) if self.sandbox_network == "allow" else Network(self.sandbox_network)

    @property
    def search_address(self) -> str:
        return self.search_url or _BRAVE_URL

    @model_validator(mode="after")
    def _check_named_roots(self) -> "Settings":
        for root in (root for roots in self.named_roots.values() for root in roots):
            if not root.startswith("/") or ".." in root.split("/"):
                raise ValueError(
                    f"FOOTPLATE_NAMED_ROOTS contains {root!r}. Paths must be absolute and must not contain `..`."
                )
        return self

    @model_validator(mode="after")
    def _check_projects_root(self) -> "Settings":
        if self.projects_root is not None and (
            not self.projects_root.startswith("/") or ".." in self.projects_root.split("/")
        ):
            raise ValueError(
                f"FOOTPLATE_PROJECTS_ROOT is {self.projects_root!r}. It must be an absolute path "
                "and must not contain `..`. Use a path such as /srv/projects, "
                f"or /srv/projects/{ORGANISATION_PLACEHOLDER} if there are several organisations."
            )
        return self

    @model_validator(mode="after")
    def _check_search(self) -> "Settings":
        if self.search_provider == "searxng" and not self.search_url:
            raise ValueError(
                "FOOTPLATE_SEARCH_PROVIDER=searxng needs FOOTPLATE_SEARCH_URL, the address of your SearXNG server."
            )
        if self.search_provider == "brave" and self.search_api_key is None:
            raise ValueError(
                "FOOTPLATE_SEARCH_PROVIDER=brave needs FOOTPLATE_SEARCH_API_KEY, your Brave Search API key."
            )
        return self

    @model_validator(mode="after")
    def _check_allowed_hosts(self) -> "Settings":
        allowed = {"WEB": self.web_allowed, "MCP": self.mcp_allowed, "WEBHOOK": self.webhook_allowed}
        for name, entries in allowed.items():
            for entry in entries:
                if not _is_network(entry) and not _HOST_PATTERN.fullmatch(entry):
                    raise ValueError(
                        f"FOOTPLATE_{name}_ALLOW contains {entry!r}, which is not a host name, address or network. "
                        "Examples: wiki.internal, 10.1.2.3, 10.1.0.0/16."
                    )
        return self

    @model_validator(mode="after")
    def _check_public_url(self) -> "Settings":
        if self.public_url is None:
            return self
        address = _parse_server_address(self.public_url)
        if address is None:
            raise ValueError(
                f"FOOTPLATE_PUBLIC_URL is {self.public_url!r}, which is not the address of a server without a path. "
                "Example: https://footplate.example.com"
            )
        self.public_url = address
        return self

    @model_validator(mode="after")
    def _check_oidc(self) -> "Settings":
        if self.oidc_issuer is None:
            return self
        if not self.oidc_client_id or self.public_url is None:
            raise ValueError(
                "FOOTPLATE_OIDC_ISSUER needs FOOTPLATE_OIDC_CLIENT_ID, and FOOTPLATE_PUBLIC_URL, to which the identity "
                "provider sends people back."
            )
        for name, url in (("OIDC_ISSUER", self.oidc_issuer), ("PUBLIC_URL", self.public_url)):
            parts = urlsplit(url)
            if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
                raise ValueError(f"FOOTPLATE_{name} must start with https:// if people sign in with OIDC.")
        return self

    @model_validator(mode="after")
    def _check_push(self) -> "Settings":
        if self.push_key is not None:
            try:
                parse_vapid_key(self.push_key)
            except ValueError as error:
                raise ValueError(f"FOOTPLATE_PUSH_PRIVATE_KEY is not a private key in base64url. {error}") from error
        if self.push_contact is not None and not self.push_contact.startswith(("mailto:", "https://")):
            raise ValueError(
                f"FOOTPLATE_PUSH_CONTACT is {self.push_contact!r}, which is neither a mailto: nor an https:// URL. "
                "Example: mailto:operator@example.com"
            )
        return self

    @model_validator(mode="after")
    def _check_session_link(self) -> "Settings":
        link = self.session_link
        if link is not None and (not link.startswith(("https://", "http://")) or "{session_id}" not in link):
            raise ValueError(
                f"FOOTPLATE_SESSION_LINK is {link!r}, which is not the address of a session. "
                "Example: https://footplate.example.com/sessions/{session_id}"
            )
        return self

    @model_validator(mode="after")
    def _check_hooks(self) -> "Settings":
        try:
            hosts = self.hook_network.hosts
        except ValueError as error:
            raise ValueError(f"FOOTPLATE_HOOK_HOSTS: {error}") from None
        if hosts and self.hook_secret is None:
            raise ValueError(f"FOOTPLATE_HOOK_HOSTS needs FOOTPLATE_HOOK_SECRET. {_SIGNING_KEY_ADVICE}")
        if self.hook_secret is not None and not _is_webhook_secret(self.hook_secret.get_secret_value()):
            raise ValueError(f"FOOTPLATE_HOOK_SECRET is not valid. {_SIGNING_KEY_ADVICE}")
        return self

    @model_validator(mode="after")
    def _check_network(self) -> "Settings":
        if (self.sandbox_network == "allow") != bool(self.sandbox_allowed_hosts.strip(" ,")):
            raise ValueError(
                "FOOTPLATE_SANDBOX_NETWORK=allow and FOOTPLATE_SANDBOX_ALLOWED_HOSTS must be set together. Set both, "
                "for example FOOTPLATE_SANDBOX_ALLOWED_HOSTS=packages.example.com,*.example.org, or neither."
            )
        try:
            _ = self.network
        except ValueError as error:
            raise ValueError(f"FOOTPLATE_SANDBOX_ALLOWED_HOSTS: {error}") from None
        return self

    @model_validator(mode="after")
    def _check_readable_paths(self) -> "Settings":
        for path in self.sandbox_readable_paths:
            if not Path(path).is_absolute() or not Path(path).is_dir():
                raise ValueError(
                    f"FOOTPLATE_SANDBOX_READABLE contains {path!r}, which is not a directory on this machine. "
                    "Write absolute paths separated by commas, for example /opt,/srv/tools."
                )
        return self

    @property
    def model_providers(self) -> tuple[str, ...]:
        """The providers whose API key is set."""
        keys = {"anthropic": self.anthropic_api_key, "openai": self.openai_api_key}
        return tuple(provider for provider, key in keys.items() if key is not None)

    @property
    def docker_image_names(self) -> list[str]:
        """All images that environments may select."""
        return [name.strip() for name in f"{self.docker_image or ''},{self.docker_images}".split(",") if name.strip()]

    @property
    def backend_names(self) -> list[BackendName]:
        """The backends that sessions may choose. The first one is the default."""
        listed = cast("list[BackendName]", [name.strip() for name in self.backends.split(",") if name.strip()])
        return [self.environment, *(name for name in dict.fromkeys(listed) if name != self.environment)]

    @model_validator(mode="after")
    def _check_backends(self) -> "Settings":
        if unknown := set(self.backend_names) - set(get_args(BackendName)):
            raise ValueError(
                f"FOOTPLATE_BACKENDS contains {min(unknown)!r}, which is not a backend. "
                f"Use {', '.join(get_args(BackendName))}, separated by commas."
            )
        return self

    @model_validator(mode="after")
    def _check_docker(self) -> "Settings":
        if "docker" not in self.backend_names:
            return self
        if bool(self.docker_image) == bool(self.docker_container):
            raise ValueError(
                "The backend docker requires exactly one of FOOTPLATE_DOCKER_IMAGE (the image for each "
                "turn's container) and FOOTPLATE_DOCKER_CONTAINER (the name of a running container)."
            )
        if not self.docker_host.startswith("unix://"):
            raise ValueError(
                f"FOOTPLATE_DOCKER_HOST (or DOCKER_HOST) is {self.docker_host!r}, which is not a local "
                "socket. Run Docker on the worker's machine and use its socket, for example unix:///var/run/docker.sock."
            )
        if self.docker_setup is not None and not self.docker_setup.is_file():
            raise ValueError(
                f"FOOTPLATE_DOCKER_SETUP is {str(self.docker_setup)!r}, which is not a file on this machine."
            )
        return self

    @model_validator(mode="after")
    def _check_lease(self) -> "Settings":
        if self.lease >= self.heartbeat_timeout:
            raise ValueError(
                "FOOTPLATE_LEASE must be shorter than FOOTPLATE_HEARTBEAT_TIMEOUT, so that "
                "the commands of a lost worker have stopped before another worker takes over."
            )
        return self
