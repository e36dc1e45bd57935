import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";

import { defineActions, offerAction } from "./registry";
import { describeKey, ShortcutHandler } from "./shortcuts";

const ends: (() => void)[] = [];

beforeAll(() => {
  defineActions([
    { id: "global.test-inbox", title: "Open the inbox", scope: "global", shortcut: "g i" },
    { id: "global.test-palette", title: "Open the palette", scope: "global", shortcut: "mod+k" },
    { id: "global.test-down", title: "Scroll", scope: "global", shortcut: "j" },
    { id: "inbox.test-down", title: "Next item", scope: "inbox", shortcut: "j" },
    { id: "inbox.test-up", title: "Previous item", scope: "inbox", shortcut: "u", canRepeat: true },
    { id: "inbox.test-open", title: "Open item", scope: "inbox", shortcut: "enter" },
    { id: "inbox.test-item", title: "Mark item", scope: "inbox", shortcut: "i" },
  ]);
});

afterEach(() => {
  for (const end of ends.splice(0)) {
    end();
  }
  document.body.replaceChildren();
});

function offer(id: string) {
  const handler = vi.fn();
  ends.push(offerAction(id, handler));
  return handler;
}

function press(handler: ShortcutHandler, key: string, options: KeyboardEventInit & { on?: Element; at?: number } = {}) {
  const event = new KeyboardEvent("keydown", { key, ...options });
  Object.defineProperty(event, "target", { value: options.on ?? document.body });
  Object.defineProperty(event, "timeStamp", { value: options.at ?? 0 });
  return handler.handle(event);
}

describe("describeKey", () => {
  it.each([
    [{ key: "a" }, "a"],
    [{ key: "K", metaKey: true }, "mod+k"],
    [{ key: "J", shiftKey: true }, "shift+j"],
    [{ key: "?", shiftKey: true }, "?"],
    [{ key: "Enter", altKey: true }, "alt+enter"],
    [{ key: "Shift", shiftKey: true }, null],
  ])("%o is %s", (keys, name) => {
    expect(describeKey({ altKey: false, ctrlKey: false, metaKey: false, shiftKey: false, ...keys })).toBe(name);
  });
});

describe("ShortcutHandler", () => {
  it("runs sequences before single keys, and forgets them after a second", () => {
    const inbox = offer("global.test-inbox");
    const item = offer("inbox.test-item");
    const shortcuts = new ShortcutHandler();
    expect(press(shortcuts, "g", { at: 0 })).toBe(true);
    press(shortcuts, "i", { at: 500 });
    expect([inbox.mock.calls.length, item.mock.calls.length]).toEqual([1, 0]);
    press(shortcuts, "g", { at: 2000 });
    press(shortcuts, "i", { at: 3500 });
    expect([inbox.mock.calls.length, item.mock.calls.length]).toEqual([1, 1]);
  });

  it("prefers the page's action, and the global one without it", () => {
    const everywhere = offer("global.test-down");
    const shortcuts = new ShortcutHandler();
    press(shortcuts, "j");
    const page = offer("inbox.test-down");
    press(shortcuts, "j");
    expect([everywhere.mock.calls.length, page.mock.calls.length]).toEqual([1, 1]);
  });

  it("leaves plain keys to fields and dialogs, but not those with a modifier", () => {
    const down = offer("global.test-down");
    const palette = offer("global.test-palette");
    const field = document.createElement("input");
    const shortcuts = new ShortcutHandler();
    expect(press(shortcuts, "j", { on: field })).toBe(false);
    expect(press(shortcuts, "k", { on: field, ctrlKey: true })).toBe(true);
    const dialog = document.createElement("div");
    dialog.setAttribute("role", "dialog");
    document.body.append(dialog);
    expect(press(shortcuts, "j")).toBe(false);
    expect([down.mock.calls.length, palette.mock.calls.length]).toEqual([0, 1]);
    dialog.hidden = true;
    expect(press(shortcuts, "j")).toBe(true);
    dialog.hidden = false;
    dialog.dataset["toast"] = "";
    expect(press(shortcuts, "j")).toBe(true);
  });

  it("leaves Enter and Space to the button that has the focus", () => {
    const open = offer("inbox.test-open");
    const shortcuts = new ShortcutHandler();
    expect(press(shortcuts, "Enter", { on: document.createElement("button") })).toBe(false);
    press(shortcuts, "Enter");
    expect(open.mock.calls.length).toBe(1);
  });

  it("runs an action once while its key is held, unless it may repeat", () => {
    const down = offer("global.test-down");
    const up = offer("inbox.test-up");
    const shortcuts = new ShortcutHandler();
    for (const repeat of [false, true, true]) {
      press(shortcuts, "j", { repeat });
      press(shortcuts, "u", { repeat });
    }
    expect([down.mock.calls.length, up.mock.calls.length]).toEqual([1, 3]);
  });
});
