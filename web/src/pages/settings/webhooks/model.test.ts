import { describe, expect, it } from "vitest";

import type { WebhookEndpoint } from "@/api/queries/webhooks";

import { describeEvents, EVENT_GROUPS, groupsWith } from "./event-types";
import { findField, newValues, overlapSchema, toFields, valuesOf, webhookSchema, type WebhookValues } from "./model";

const STORED = {
  id: "whep_1",
  url: "https://hooks.example.com/a",
  description: "For the team",
  event_types: ["session.created", "future.type"],
  session_id: null,
  format: "standard",
  ordered: true,
} as unknown as WebhookEndpoint;

const NEW: WebhookValues = { ...newValues("all"), url: "https://hooks.example.com" };
const messagesOf = (values: unknown): string[] =>
  webhookSchema.safeParse(values).error?.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`) ?? [];

describe("the form of a webhook", () => {
  it("sends only what was changed", () => {
    expect(toFields(valuesOf(STORED), STORED)).toEqual({});
    expect(toFields({ ...valuesOf(STORED), description: " ", events: "all" }, STORED)).toEqual({
      description: null,
      event_types: [],
    });
  });

  it("creates an endpoint of all sessions, or of one", () => {
    expect(toFields(NEW, null)).not.toHaveProperty("session_id");
    expect(toFields({ ...NEW, sessions: "one", sessionId: " sesn_1 " }, null)).toMatchObject({
      url: "https://hooks.example.com",
      session_id: "sesn_1",
    });
  });

  it.each([
    [{ url: "hooks.example.com" }, "url: Write a full address, such as https://hooks.example.com/footplate."],
    [{ sessions: "one" }, "sessionId: Write the id of the session."],
    [{ types: [] }, "types: Choose an event, or all of them."],
  ])("refuses %j", (change, message) => {
    expect(messagesOf({ ...NEW, ...change })).toEqual([message]);
  });

  it("finds the field of an error", () => {
    expect(findField("url")).toBe("url");
    expect(findField("event_types.3")).toBe("types");
    expect(findField("disabled")).toBeNull();
  });

  it.each([
    ["0", true],
    ["168", true],
    ["169", false],
    ["1.5", false],
    ["", false],
  ])("an overlap of %j hours", (hours, isValid) => {
    expect(overlapSchema.safeParse({ hours }).success).toBe(isValid);
  });
});

describe("the types of events", () => {
  it("shows types that only the server knows", () => {
    expect(groupsWith(["session.created"])).toEqual(EVENT_GROUPS);
    expect(groupsWith(STORED.event_types).at(-1)).toEqual({ title: "Others", types: ["future.type"] });
  });

  it("says which an endpoint receives", () => {
    expect(describeEvents([])).toBe("all events");
    expect(describeEvents(["a"])).toBe("a");
    expect(describeEvents(["a", "b", "c"])).toBe("a and 2 more");
  });
});
