import { describe, expect, it } from "vitest";

import { buildNotification, findPath, readContent, readPath } from "./notification";

const ITEM = { type: "inbox.item", id: "sevt_1", title: "bash needs approval", body: "Release 2.1" };

describe("a message", () => {
  it("becomes a notification with the tag of its item", () => {
    expect(buildNotification(readContent(JSON.stringify(ITEM)))).toEqual({
      title: "bash needs approval",
      options: { body: "Release 2.1", tag: "sevt_1", icon: "/icon.svg", data: { path: "/inbox?item=sevt_1" } },
    });
  });

  it.each([
    undefined,
    "",
    "no JSON",
    "null",
    "[]",
    '{"type":"inbox.item"}',
    '{"type":1,"id":"a","title":"b","body":"c"}',
  ])("that cannot be read still shows something: %s", (text) => {
    const content = readContent(text);
    expect(content.title).toBe("Something needs you");
    expect(findPath(content)).toBe("/inbox");
  });

  it("opens the page that it is about", () => {
    expect(findPath({ ...ITEM, id: "a&b" })).toBe("/inbox?item=a%26b");
    expect(findPath({ ...ITEM, type: "push.test" })).toBe("/settings?section=notifications");
    expect(findPath({ ...ITEM, type: "of.a.newer.server" })).toBe("/inbox");
  });
});

describe("a click", () => {
  it.each([
    [{ path: "/inbox?item=a" }, "/inbox?item=a"],
    [{ path: "//elsewhere.example.com" }, "/inbox"],
    [{ path: "https://elsewhere.example.com" }, "/inbox"],
    [{ path: 1 }, "/inbox"],
    [null, "/inbox"],
    ["/sessions", "/inbox"],
  ])("on a notification with %j opens %s", (data, path) => {
    expect(readPath(data)).toBe(path);
  });
});
