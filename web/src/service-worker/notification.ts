// What the service worker shows for a message of the server, and what a click on it opens. Pure.

/** A message of the server, as `docs/notifications.md` describes it. */
export interface PushContent {
  type: string;
  id: string;
  title: string;
  body: string;
}

export interface ShownNotification {
  title: string;
  options: NotificationOptions;
}

const UNKNOWN: PushContent = {
  type: "unknown",
  id: "unknown",
  title: "Something needs you",
  body: "Open Footplate to see what it is.",
};

/** Reads the text of a message. Each message must show something, also one that a newer server sends. */
export function readContent(text: string | undefined): PushContent {
  let found: unknown;
  try {
    found = JSON.parse(text ?? "");
  } catch {
    return UNKNOWN;
  }
  return isContent(found) ? found : UNKNOWN;
}

/** The tag makes a message that arrives twice replace the first one, without a sound. */
export function buildNotification(content: PushContent): ShownNotification {
  return {
    title: content.title,
    options: { body: content.body, tag: content.id, icon: "/icon.svg", data: { path: findPath(content) } },
  };
}

export function findPath(content: PushContent): string {
  switch (content.type) {
    case "inbox.item":
      return `/inbox?item=${encodeURIComponent(content.id)}`;
    case "push.test":
      return "/settings?section=notifications";
    default:
      return "/inbox";
  }
}

/** Only paths of this server are opened, whatever the notification contains. */
export function readPath(data: unknown): string {
  const path: unknown = typeof data === "object" && data !== null && "path" in data ? data.path : undefined;
  return typeof path === "string" && path.startsWith("/") && !path.startsWith("//") ? path : "/inbox";
}

function isContent(found: unknown): found is PushContent {
  if (typeof found !== "object" || found === null) {
    return false;
  }
  const fields = found as Partial<Record<keyof PushContent, unknown>>;
  return (["type", "id", "title", "body"] as const).every((name) => typeof fields[name] === "string");
}
