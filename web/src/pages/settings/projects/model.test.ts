import { describe, expect, it } from "vitest";

import type { Project } from "@/api/queries/projects";

import { findField, hasRules, NEW_PROJECT, projectSchema, toFields, valuesOf } from "./model";

const STORED = {
  id: "proj_1",
  name: "website",
  path: null,
  url: "https://git.example.com/website.git",
  branch: "next",
  trust: "instructions",
  permissions: { deny: [], ask: [], allow: [] },
  setup: "npm ci",
  cached_directories: ["node_modules"],
  metadata: {},
} as unknown as Project;

const messagesOf = (values: unknown): string[] =>
  projectSchema.safeParse(values).error?.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`) ?? [];

describe("the form of a project", () => {
  it("creates a project with only what was written", () => {
    expect(toFields({ ...NEW_PROJECT, kind: "path", location: " team/website " }, null)).toEqual({
      path: "team/website",
      trust: "nothing",
    });
    expect(toFields({ ...NEW_PROJECT, location: "https://a/b", name: "b", caches: "none" }, null)).toEqual({
      url: "https://a/b",
      name: "b",
      trust: "nothing",
      cached_directories: [],
    });
  });

  it("sends only what was changed, and never the location", () => {
    const values = valuesOf(STORED);
    expect(toFields(values, STORED)).toEqual({});
    expect(toFields({ ...values, branch: "", setup: " ", caches: "default" }, STORED)).toEqual({
      branch: null,
      setup: null,
      cached_directories: null,
    });
    expect(toFields({ ...values, directories: "a\n\n b " }, STORED)).toEqual({ cached_directories: ["a", "b"] });
  });

  it.each([
    [{ ...NEW_PROJECT }, "location: Write the address of the repository."],
    [{ ...NEW_PROJECT, kind: "path" }, "location: Write the path of the repository."],
    [{ ...valuesOf(STORED), name: "" }, "name: Give the project a name."],
    [{ ...valuesOf(STORED), name: "my site" }, "name: Use up to 64 letters, digits, dots, hyphens and underscores."],
    [{ ...valuesOf(STORED), directories: "" }, "directories: Write 1 to 32 directories, one per line."],
  ])("refuses %#", (values, message) => {
    expect(messagesOf(values)).toEqual([message]);
  });

  it("finds the field of an error", () => {
    expect(findField("url")).toBe("location");
    expect(findField("cached_directories.0")).toBe("directories");
    expect(findField("permissions.deny.0")).toBeNull();
  });

  it("knows whether a project has rules", () => {
    expect(hasRules(STORED)).toBe(false);
    expect(hasRules({ ...STORED, permissions: { deny: [], ask: ["Bash"], allow: [] } })).toBe(true);
  });
});
