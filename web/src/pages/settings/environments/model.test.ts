import { describe, expect, it } from "vitest";

import type { Environment } from "@/api/queries/environments";

import {
  describeNetwork,
  environmentSchema,
  findField,
  NEW_ENVIRONMENT,
  readConfig,
  toFields,
  valuesOf,
} from "./model";

const STORED = {
  id: "env_1",
  name: "python",
  description: null,
  config: {
    type: "cloud",
    networking: {
      type: "limited",
      allowed_hosts: ["pypi.org"],
      allow_mcp_servers: false,
      allow_package_managers: false,
    },
    packages: { type: "packages", apt: ["git", "curl"], cargo: [], gem: [], go: [], npm: [], pip: [] },
    image: "python:3.12",
    future: 1,
  },
  metadata: {},
} as unknown as Environment;

describe("the form of an environment", () => {
  it("creates an environment with only what was written", () => {
    expect(toFields({ ...NEW_ENVIRONMENT, name: " plain " }, null)).toEqual({
      name: "plain",
      config: { type: "cloud" },
    });
    const limited = { ...NEW_ENVIRONMENT, name: "a", backend: "sandbox", network: "limited" as const };
    expect(toFields({ ...limited, hosts: "a.example\n b.example " }, null)).toEqual({
      name: "a",
      config: {
        type: "cloud",
        backend: "sandbox",
        networking: { type: "limited", allowed_hosts: ["a.example", "b.example"], allow_mcp_servers: false },
      },
    });
  });

  it("sends only the parts that were changed, so that the server keeps the others", () => {
    const values = valuesOf(STORED);
    expect(toFields(values, STORED)).toEqual({});
    expect(toFields({ ...values, description: "For tests" }, STORED)).toEqual({ description: "For tests" });
    expect(toFields({ ...values, image: "", network: "unrestricted" }, STORED)).toEqual({
      config: { type: "cloud", image: "", networking: { type: "unrestricted" } },
    });
    expect(toFields({ ...values, packages: { ...values.packages, pip: "pytest  ruff" } }, STORED)).toEqual({
      config: {
        type: "cloud",
        packages: {
          type: "packages",
          apt: ["git", "curl"],
          cargo: [],
          gem: [],
          go: [],
          npm: [],
          pip: ["pytest", "ruff"],
        },
      },
    });
  });

  it("reads a configuration that has nothing", () => {
    const empty = { ...STORED, config: { type: "cloud" } };
    expect(valuesOf(empty)).toEqual({ ...NEW_ENVIRONMENT, name: "python" });
    expect(environmentSchema.safeParse({ ...NEW_ENVIRONMENT, name: " " }).error?.issues[0]?.message).toBe(
      "Give the environment a name.",
    );
  });

  it.each([
    [{}, "only pypi.org"],
    [{ isLimited: false }, "as the server allows"],
    [{ hosts: [] }, "no network"],
    [{ hosts: [], allowsMcpServers: true }, "no network, and MCP servers"],
    [{ hosts: ["a", "b"] }, "only 2 hosts"],
  ])("says what commands reach: %j", (change, text) => {
    expect(describeNetwork({ ...readConfig(STORED), ...change })).toBe(text);
  });

  it("finds the field of an error", () => {
    expect(findField("config.networking.allowed_hosts.0")).toBe("hosts");
    expect(findField("config.cloud.networking.allowed_hosts.1")).toBe("hosts");
    expect(findField("config.packages.pip.0")).toBe("packages.pip");
    expect(findField("config.image")).toBe("image");
    expect(findField("metadata")).toBeNull();
  });
});
