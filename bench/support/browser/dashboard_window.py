"""Opens the dashboard in Chromium, signed in through its form, and collects what goes wrong in it."""

import re
import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page

from bench.support.clients import TOOLSET, Client
from bench.support.cluster import Cluster
from footplate.testing.model_scripts import Replies

FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server"),
)
DESKTOP: Final = (1440, 900)
TABLET: Final = (1024, 768)
PHONE: Final = (390, 844)
PATIENCE_MS: Final = 60_000
Theme = Literal["light", "dark"]

_REPORT_VIOLATIONS: Final = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`content security policy: ${event.violatedDirective} ${event.blockedURI}`);
});
"""
_ALLOW: Final[dict[str, Any]] = {"allow": ["Bash(*)", "Edit", "Write"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardWindow:
    page: Page
    context: BrowserContext
    base_url: str

    async def open_page(self, path: str) -> None:
        await self.page.goto(self.base_url + path)
        await self.wait_until_live()

    async def wait_until_live(self) -> None:
        await self.page.wait_for_selector("[data-feed-state=live]", state="attached")

    async def run_action(self, title: str) -> None:
        """Runs an action by the palette."""
        page = self.page
        await page.keyboard.press("Control+k")
        await page.get_by_placeholder("Search actions and sessions").fill(title)
        await page.get_by_role("option", name=title, selected=True).wait_for()
        await page.keyboard.press("Enter")

    async def list_actions(self) -> list[str]:
        """Returns the ids of all actions that the application has registered."""
        await self.page.keyboard.press("?")
        shown = self.page.locator("[data-actions]")
        ids = await shown.get_attribute("data-actions") or ""
        await self.page.keyboard.press("Escape")
        await shown.wait_for(state="detached")
        return ids.split()


@dataclass(slots=True, kw_only=True)
class Workplace:
    """An organisation, with a client for the API and windows of the dashboard."""

    cluster: Cluster
    browser: Browser
    key: str
    client: Client
    problems: list[str] = field(default_factory=list)
    """What the consoles of all windows reported."""
    expected: list[re.Pattern[str]] = field(default_factory=list)
    """Reports that a test causes on purpose, such as a lost connection."""
    _closing: AsyncExitStack
    _agents: dict[str, str] = field(default_factory=dict)

    @classmethod
    async def open(cls, cluster: Cluster, browser: Browser, closing: AsyncExitStack) -> Self:
        key = await cluster.create_key(f"browser-{secrets.token_hex(4)}", name="Ada")
        client = await closing.enter_async_context(Client(cluster, key=key))
        return cls(cluster=cluster, browser=browser, key=key, client=client, _closing=closing)

    async def sign_in(
        self, *, size: tuple[int, int] = DESKTOP, theme: Theme = "light", key: str | None = None, path: str = "/"
    ) -> DashboardWindow:
        window = await self.open_window(size=size, theme=theme)
        page = window.page
        await page.goto(window.base_url + path)
        await page.get_by_label("API key").fill(key or self.key)
        await page.get_by_role("button", name="Sign in").click()
        await window.wait_until_live()
        return window

    async def open_window(self, *, size: tuple[int, int] = DESKTOP, theme: Theme = "light") -> DashboardWindow:
        """Opens a window that is not signed in. It shares nothing with the others."""
        is_phone = size[0] < TABLET[0] // 2
        context = await self.browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=theme,
            has_touch=is_phone,
            is_mobile=is_phone,
            reduced_motion="reduce",
        )
        self._closing.push_async_callback(context.close)
        context.set_default_timeout(PATIENCE_MS)
        await context.add_init_script(_REPORT_VIOLATIONS)
        await context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = await context.new_page()
        page.on("console", lambda message: self._note_message(message))  # noqa: PLW0108 - playwright sets attributes on it
        page.on("pageerror", lambda error: self._note(f"exception: {error}"))
        return DashboardWindow(page=page, context=context, base_url=self.cluster.base_urls[0])

    async def start_session(
        self,
        script: Replies,
        *,
        title: str,
        permissions: dict[str, Any] | None = None,
        tools: Sequence[Any] = (),
        extra_body: dict[str, Any] | None = None,
    ) -> str:
        """Starts a session whose model follows the script. Returns its id without waiting."""
        rules = permissions or _ALLOW
        agent = self._agents.get(repr(rules)) or await self.client.agent(
            name="engineer",
            tools=list(tools) or [{**TOOLSET, "ask_user": True}],
            extra_body={"harness": "native", "permissions": rules},
        )
        self._agents[repr(rules)] = agent
        name = f"browser-{secrets.token_hex(6)}"
        await self.cluster.model.install(name, script)
        session_id = await self.client.session(agent, title=title, extra_body=extra_body or {})
        await self.client.send_text(session_id, f"Begin [[script:{name}]]")
        return session_id

    async def create_viewer_key(self) -> str:
        """Creates a member who may only look, and returns its API key."""
        post = self.client.sdk.post
        name = f"viewer-{secrets.token_hex(4)}"
        member = await post("/v1/members", body={"name": name, "roles": ["viewer"]}, cast_to=dict[str, Any])
        body = {"name": name, "member_id": member["id"], "roles": ["viewer"]}
        return str((await post("/v1/api_keys", body=body, cast_to=dict[str, Any]))["secret"])

    def expect(self, pattern: str) -> None:
        """Reports that match do not fail the test."""
        self.expected.append(re.compile(pattern))

    def _note_message(self, message: ConsoleMessage) -> None:
        url = str(message.location.get("url", ""))
        # The page asks who is signed in; 401 is the answer of a browser that is not.
        if message.type == "error" and not (url.endswith("/v1/me") and "401" in message.text):
            self._note(f"{message.text} ({url})")

    def _note(self, problem: str) -> None:
        if not any(pattern.search(problem) for pattern in self.expected):
            self.problems.append(problem)
