// What a browser's name, abilities and keys mean for notifications. Pure.

export type Obstacle = "insecure" | "home-screen" | "unsupported" | "denied";

export interface BrowserAbilities {
  isSecureContext: boolean;
  hasServiceWorker: boolean;
  hasPush: boolean;
  permission: NotificationPermission | null;
  userAgent: string;
}

/** Why this browser cannot show notifications. Null: it can. */
export function findObstacle(abilities: BrowserAbilities): Obstacle | null {
  if (!abilities.isSecureContext) {
    return "insecure";
  }
  if (!abilities.hasServiceWorker || !abilities.hasPush || abilities.permission === null) {
    // Safari on phones and tablets has push only in apps of the home screen.
    return /iPhone|iPad/.test(abilities.userAgent) ? "home-screen" : "unsupported";
  }
  return abilities.permission === "denied" ? "denied" : null;
}

export const OBSTACLES: Record<Obstacle, { title: string; text: string }> = {
  insecure: {
    title: "This address is not secure",
    text: "Browsers allow notifications only over HTTPS, or on this machine at localhost. Open the dashboard at such an address.",
  },
  "home-screen": {
    title: "Add Footplate to your home screen first",
    text: "On iPhone and iPad, only apps of the home screen receive notifications. Choose Share, then Add to Home Screen, and open Footplate from there.",
  },
  unsupported: {
    title: "This browser has no web push",
    text: "Use a current version of Chrome, Edge, Firefox or Safari, and no private window.",
  },
  denied: {
    title: "This browser blocks notifications of this site",
    text: "Allow them in the settings of the site, next to the address, and reload the page.",
  },
};

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/Edg(e|A|iOS)?\//, "Edge"],
  [/OPR\/|Opera/, "Opera"],
  [/Firefox\/|FxiOS\//, "Firefox"],
  [/Chrome\/|CriOS\/|Chromium\//, "Chrome"],
  [/Safari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/iPhone/, "iPhone"],
  [/iPad/, "iPad"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/Mac OS X|Macintosh/, "macOS"],
  [/CrOS/, "ChromeOS"],
  [/Linux/, "Linux"],
];

/** `Firefox on Android`. Of an unknown browser, what it sent. */
export function nameBrowser(userAgent: string): string {
  const browser = BROWSERS.find(([pattern]) => pattern.test(userAgent))?.[1];
  const system = SYSTEMS.find(([pattern]) => pattern.test(userAgent))?.[1];
  if (browser === undefined) {
    return userAgent === "" ? "Unknown browser" : userAgent;
  }
  return system === undefined ? browser : `${browser} on ${system}`;
}

/** The key of the server as bytes: browsers do not accept base64url everywhere. */
export function decodeKey(text: string): Uint8Array<ArrayBuffer> {
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

export function isSameKey(one: ArrayBuffer | null, other: Uint8Array): boolean {
  const bytes = new Uint8Array(one ?? new ArrayBuffer(0));
  return bytes.length === other.length && bytes.every((byte, index) => byte === other[index]);
}
