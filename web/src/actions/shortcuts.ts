// Runs actions by their keys: single keys, keys one after the other, and keys with modifiers.
import { type ActionDefinition, isAvailable, listActions, runAction } from "./registry";

const KEY_OWNERS = "[role=dialog]:not([data-toast]), [role=menu], [role=listbox]";

/** A list that was closed may stay in the page, hidden. */
function hasKeyOwner(): boolean {
  return [...document.querySelectorAll(KEY_OWNERS)].some((owner) => owner.closest("[hidden]") === null);
}
/** Between the keys of a sequence. */
const SEQUENCE_MS = 1000;
const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** The name of the pressed keys: `a`, `shift+j`, `mod+k`, `?`. Null for a modifier alone. */
export function describeKey(
  event: Pick<KeyboardEvent, "key" | "altKey" | "ctrlKey" | "metaKey" | "shiftKey">,
): string | null {
  if (["Shift", "Control", "Alt", "Meta", "Dead", "CapsLock"].includes(event.key)) {
    return null;
  }
  const isLetter = /^\p{L}$/u.test(event.key);
  const key = isLetter ? event.key.toLowerCase() : (NAMES[event.key] ?? event.key.toLowerCase());
  const parts: string[] = [];
  if (event.metaKey || event.ctrlKey) {
    parts.push("mod");
  }
  if (event.altKey) {
    parts.push("alt");
  }
  // The character `?` already needs Shift.
  if (event.shiftKey && (isLetter || key.length > 1)) {
    parts.push("shift");
  }
  return [...parts, key].join("+");
}

const NAMES: Record<string, string> = {
  " ": "space",
  Escape: "escape",
  Enter: "enter",
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

const SYMBOLS: Record<string, string> = {
  mod: isMac ? "⌘" : "Ctrl",
  alt: isMac ? "⌥" : "Alt",
  shift: isMac ? "⇧" : "Shift",
  enter: "⏎",
  escape: "Esc",
  up: "↑",
  down: "↓",
  left: "←",
  right: "→",
  space: "Space",
};

/** The keys as a person reads them, one entry per key of a sequence: `⌘K`, or `G` and `I`. */
export function displayShortcut(shortcut: string): string[] {
  return shortcut.split(" ").map((chord) =>
    chord
      .split("+")
      .map((part) => SYMBOLS[part] ?? (part.length === 1 ? part.toUpperCase() : part))
      .join(isMac ? "" : "+"),
  );
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, .xterm") !== null)
  );
}

/** Enter and Space press the button, link or checkbox that has the focus. */
function pressesControl(key: string, target: EventTarget | null): boolean {
  return (
    (key === "enter" || key === "space") &&
    target instanceof HTMLElement &&
    target.closest("button, a[href], summary, [role=button], [role=checkbox], [role=tab]") !== null
  );
}

export class ShortcutHandler {
  #pressed: string[] = [];
  #pressedAt = 0;

  /** Runs what the key stands for. Returns whether it was a shortcut. */
  handle(event: KeyboardEvent): boolean {
    const key = describeKey(event);
    if (key === null || event.isComposing || event.defaultPrevented) {
      return false;
    }
    const hasModifier = key.startsWith("mod+") || key.startsWith("alt+");
    if ((isTyping(event.target) && !hasModifier) || pressesControl(key, event.target)) {
      return false;
    }
    // In a dialog or a menu, plain keys belong to it. A toast has the role of a dialog too, but takes no keys.
    if (!hasModifier && hasKeyOwner()) {
      return false;
    }
    if (event.timeStamp - this.#pressedAt > SEQUENCE_MS) {
      this.#pressed = [];
    }
    this.#pressedAt = event.timeStamp;
    const sequence = [...this.#pressed, key];
    const available = listActions().filter((action) => action.shortcut !== undefined && isAvailable(action.id));
    const action = find(available, sequence.join(" ")) ?? (sequence.length > 1 ? find(available, key) : undefined);
    if (action !== undefined) {
      this.#pressed = [];
      // A key that is held must not allow one call after the other.
      return event.repeat && action.canRepeat !== true ? true : runAction(action.id);
    }
    const starts = (text: string): boolean => available.some((one) => one.shortcut?.startsWith(`${text} `));
    this.#pressed = starts(sequence.join(" ")) ? sequence : starts(key) ? [key] : [];
    return this.#pressed.length > 0;
  }
}

/** The action of a page has precedence over a global one with the same keys. */
function find(actions: readonly ActionDefinition[], keys: string): ActionDefinition | undefined {
  const found = actions.filter((action) => action.shortcut === keys);
  return found.find((action) => action.scope !== "global") ?? found[0];
}
