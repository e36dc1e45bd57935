"""Lets Chromium subscribe at the push service of a test, and delivers what arrived there to the service worker.

The push service of Chromium's vendor cannot be reached from a test, so the subscription is the test's. The permission,
the service worker and the notification are Chromium's. A click is the event that Chromium sends.
"""

import asyncio
import json
from typing import Any, Final

from playwright.async_api import CDPSession, Worker

from bench.support.browser.dashboard_window import DashboardWindow
from bench.support.push.push_service import BrowserKeys, PushedMessage, PushService

_SUBSCRIPTION: Final = """(() => {
  const made = %s;
  const stored = "test-push-key";
  const encode = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));
  const decode = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;
  const build = (key) => ({
    endpoint: made.endpoint,
    options: { userVisibleOnly: true, applicationServerKey: decode(key) },
    toJSON: () => made,
    unsubscribe: async () => { localStorage.removeItem(stored); return true; },
  });
  PushManager.prototype.getSubscription = async () => {
    const key = localStorage.getItem(stored);
    return key === null ? null : build(key);
  };
  PushManager.prototype.subscribe = async (options) => {
    localStorage.setItem(stored, encode(options.applicationServerKey));
    return build(localStorage.getItem(stored));
  };
})()"""
_LIST_SHOWN: Final = """async () => {
  const registration = await navigator.serviceWorker.ready;
  const shown = await registration.getNotifications();
  return shown.map(({ title, body, tag, data }) => ({ title, body, tag, path: data.path }));
}"""
_CLICK: Final = """async (tag) => {
  const [notification] = await self.registration.getNotifications({ tag });
  self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
}"""
_REGISTRATION_SECONDS: Final = 30


class BrowserPush:
    """One window whose push service is that of the test."""

    def __init__(self, window: DashboardWindow, service: PushService, browser: BrowserKeys) -> None:
        self.window = window
        self.service = service
        self.browser = browser
        self._session: CDPSession | None = None
        self._registration: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, window: DashboardWindow, service: PushService, path: str = "/browser") -> "BrowserPush":
        """Call this before the window opens the page that subscribes."""
        browser = service.add_browser(path)
        await window.context.add_init_script(_SUBSCRIPTION % json.dumps(service.subscription(browser)))
        await window.context.grant_permissions(["notifications"], origin=window.base_url)
        return cls(window, service, browser)

    async def deliver(self, message: PushedMessage) -> None:
        """Delivers a message, as the browser does when its push service has one."""
        if self._session is None:
            self._session = await self.window.context.new_cdp_session(self.window.page)
            self._session.on("ServiceWorker.workerVersionUpdated", self._note_versions)
            await self._session.send("ServiceWorker.enable")
        registration = await asyncio.wait_for(asyncio.shield(self._registration), _REGISTRATION_SECONDS)
        await self._session.send(
            "ServiceWorker.deliverPushMessage",
            {"origin": self.window.base_url, "registrationId": registration, "data": json.dumps(message.content)},
        )

    async def list_shown(self) -> list[dict[str, Any]]:
        """Returns the notifications that are on the screen."""
        shown: list[dict[str, Any]] = await self.window.page.evaluate(_LIST_SHOWN)
        return shown

    async def click(self, tag: str) -> None:
        """Clicks a notification: the service worker gets the event that Chromium sends."""
        (worker,) = [each for each in self.window.context.service_workers if _is_ours(each)]
        await worker.evaluate(_CLICK, tag)

    def _note_versions(self, event: dict[str, Any]) -> None:
        """Chromium drops a message to a service worker that is not activated yet."""
        for each in event["versions"]:
            is_ready = each["scriptURL"].startswith(self.window.base_url) and each["status"] == "activated"
            if is_ready and not self._registration.done():
                self._registration.set_result(each["registrationId"])


def _is_ours(worker: Worker) -> bool:
    return worker.url.endswith("/service-worker.js")
