import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { isTooHard } from "./cost";
import { readLink } from "./links";
import { Markdown } from "./markdown";

let box: HTMLElement;

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  box = document.createElement("div");
});

afterEach(() => {
  box.remove();
});

function render(text: string): HTMLElement {
  act(() => {
    createRoot(box).render(<Markdown>{text}</Markdown>);
  });
  return box;
}

describe("Markdown", () => {
  it("shows HTML as text", () => {
    render("Hi <img src=x onerror=alert(1)> there\n\n<script>alert(1)</script>\n\n<iframe src='https://evil.example'>");
    expect(box.querySelector("img, script, iframe")).toBeNull();
    expect(box.textContent).toContain("<img src=x onerror=alert(1)>");
    expect(box.textContent).toContain("<script>alert(1)</script>");
  });

  it("loads no remote image", () => {
    render("![secret](https://evil.example/pixel.png?data=1) ![x](data:image/svg+xml,<svg onload=alert(1)>)");
    expect(box.querySelector("img")).toBeNull();
    expect(box.textContent).toContain("Image: secret (evil.example)");
  });

  it("links only to web pages and mail, with the host", () => {
    render(
      "[a](javascript:alert(1)) [b](data:text/html,x) [c](/sessions) [d](https://example.com/x) [e](vbscript:x) " +
        "[f](file:///etc/passwd) [https://bank.example](https://evil.example/)",
    );
    const links = [...box.querySelectorAll("a")];
    expect(links.map((link) => link.getAttribute("href"))).toEqual(["https://example.com/x", "https://evil.example/"]);
    expect(links.every((link) => link.rel === "noopener noreferrer" && link.target === "_blank")).toBe(true);
    expect(links[1]?.textContent).toContain("(evil.example)");
  });

  it("marks hidden characters, also in code", () => {
    render("a\u202eb `c\u200bd`\n\n```\ne\u0000f\n```");
    expect(box.textContent).toContain("U+202E");
    expect(box.textContent).toContain("U+200B");
  });

  it("shows tables, lists and code", () => {
    render("| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- two\n\n```python\nx = 1\n```");
    expect(box.querySelectorAll("td")).toHaveLength(2);
    expect(box.querySelectorAll("li")).toHaveLength(2);
    expect(box.querySelector("pre")?.textContent).toBe("x = 1");
  });

  it.each([
    [">".repeat(20_000)],
    ["[".repeat(50_000)],
    ["*a ".repeat(30_000)],
    ["- ".repeat(5_000)],
    ["> ".repeat(10_000) + "deep"],
    ["`".repeat(50_000)],
    ["![".repeat(20_000)],
    ["<a>".repeat(20_000)],
    ["x".repeat(300_000)],
    [Array.from({ length: 500 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n")],
    ["_".repeat(50_000) + "a" + "_".repeat(50_000)],
    ["((".repeat(20_000)],
    ["|".repeat(60_000)],
  ])("does not freeze (%#)", (text) => {
    const start = performance.now();
    render(text);
    expect(performance.now() - start).toBeLessThan(3000);
    expect(isTooHard("Ordinary **text** with a [link](https://example.com).")).toBe(false);
  });
});

describe("readLink", () => {
  it.each([
    "javascript:alert(1)",
    " java\nscript:alert(1)",
    "//evil.example",
    "/v1/me",
    "https://user:pass@bank.example",
    "",
    null,
  ])("refuses %s", (href) => {
    expect(readLink(href)).toBeNull();
  });

  it("shows the real host of a deceptive one", () => {
    expect(readLink("https://аpple.com/")?.host).toMatch(/^xn--/);
    expect(readLink("mailto:ann@example.com")?.host).toBe("ann@example.com");
  });
});

it("has the direction of its text", () => {
  render("شكرا لك\n\nHello");
  expect([...box.querySelectorAll("p")].map((one) => one.getAttribute("dir"))).toEqual(["rtl", "ltr"]);
});
