// The service worker: shows the notifications of the server, and opens what a click on one asks for. It caches nothing, so
// a new version of the dashboard takes effect with the next page load.
import { buildNotification, readContent, readPath } from "./notification";

declare const self: ServiceWorkerGlobalScope;

self.addEventListener("install", (event) => {
  event.waitUntil(self.skipWaiting());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(self.clients.claim());
});

self.addEventListener("push", (event) => {
  const { title, options } = buildNotification(readContent(event.data?.text()));
  event.waitUntil(self.registration.showNotification(title, options));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPage(readPath(event.notification.data)));
});

/** Shows the page in a window of the dashboard that is open, or in a new one. */
async function openPage(path: string): Promise<void> {
  const url = new URL(path, self.location.origin).href;
  for (const client of await self.clients.matchAll({ type: "window" })) {
    // A browser may refuse the focus, for example when the click was long ago. The page is shown all the same.
    await client.focus().catch(() => undefined);
    try {
      if (client.url !== url) {
        await client.navigate(url);
      }
      return;
    } catch {
      // The window was closed meanwhile: the next one, or a new one.
    }
  }
  await self.clients.openWindow(url);
}
