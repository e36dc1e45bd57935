import { describe, expect, it } from "vitest";

import { decodeKey, findObstacle, isSameKey, nameBrowser } from "./browser";

const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const IPHONE =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1";
const ABLE = {
  isSecureContext: true,
  hasServiceWorker: true,
  hasPush: true,
  permission: "default",
  userAgent: CHROME,
} as const;

describe("findObstacle", () => {
  it("finds none in a browser that has everything", () => {
    expect(findObstacle(ABLE)).toBeNull();
    expect(findObstacle({ ...ABLE, permission: "granted" })).toBeNull();
  });

  it.each([
    [{ isSecureContext: false, hasServiceWorker: false }, "insecure"],
    [{ hasServiceWorker: false }, "unsupported"],
    [{ hasPush: false }, "unsupported"],
    [{ permission: null }, "unsupported"],
    [{ hasPush: false, permission: null, userAgent: IPHONE }, "home-screen"],
    [{ permission: "denied" as const }, "denied"],
  ])("of %j is %s", (change, obstacle) => {
    expect(findObstacle({ ...ABLE, ...change })).toBe(obstacle);
  });
});

describe("nameBrowser", () => {
  it.each([
    [CHROME, "Chrome on Linux"],
    [IPHONE, "Safari on iPhone"],
    [`${CHROME} Edg/140.0.0.0`, "Edge on Linux"],
    ["Mozilla/5.0 (Android 15; Mobile; rv:130.0) Gecko/130.0 Firefox/130.0", "Firefox on Android"],
    [
      "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36",
      "Chrome on Windows",
    ],
    ["Firefox/130", "Firefox"],
    ["python-httpx", "python-httpx"],
    ["", "Unknown browser"],
  ])("of %s is %s", (userAgent, name) => {
    expect(nameBrowser(userAgent)).toBe(name);
  });
});

describe("keys", () => {
  it("are compared as bytes", () => {
    const key = decodeKey("BP-_AA");
    expect([...key]).toEqual([4, 255, 191, 0]);
    expect(isSameKey(key.buffer, key)).toBe(true);
    expect(isSameKey(decodeKey("BP-_AQ").buffer, key)).toBe(false);
    expect(isSameKey(null, key)).toBe(false);
  });
});
