// The values of the form of a webhook endpoint: from an endpoint, checked, and as fields of a request.
import type { WebhookEndpoint } from "@/api/queries/webhooks";
import { z } from "@/design/zod";

import { pickChanged } from "../work/changed-fields";

const LONGEST_URL = 2000;
const LONGEST_DESCRIPTION = 500;
export const MAX_OVERLAP_HOURS = 168;

export const webhookSchema = z
  .object({
    url: z
      .string()
      .trim()
      .max(LONGEST_URL, `Shorten it to ${LONGEST_URL.toLocaleString("en-US")} characters.`)
      .refine(
        (text) => /^https?:\/\/\S/.test(text),
        "Write a full address, such as https://hooks.example.com/footplate.",
      ),
    description: z.string().max(LONGEST_DESCRIPTION, `Shorten it to ${LONGEST_DESCRIPTION} characters.`),
    sessions: z.enum(["all", "one"]),
    sessionId: z.string(),
    events: z.enum(["all", "chosen"]),
    types: z.array(z.string()),
    format: z.enum(["standard", "slack"]),
    ordered: z.boolean(),
  })
  .superRefine((values, context) => {
    if (values.sessions === "one" && values.sessionId.trim() === "") {
      context.addIssue({ code: "custom", path: ["sessionId"], message: "Write the id of the session." });
    }
    if (values.events === "chosen" && values.types.length === 0) {
      context.addIssue({ code: "custom", path: ["types"], message: "Choose an event, or all of them." });
    }
  });

export type WebhookValues = z.infer<typeof webhookSchema>;

/** `sessions`: only administrators create endpoints for all sessions. */
export function newValues(sessions: "all" | "one"): WebhookValues {
  return {
    url: "",
    description: "",
    sessions,
    sessionId: "",
    events: "chosen",
    types: ["session.requires_action", "session.status_terminated"],
    format: "standard",
    ordered: false,
  };
}

export function valuesOf(endpoint: WebhookEndpoint): WebhookValues {
  return {
    url: endpoint.url,
    description: endpoint.description ?? "",
    sessions: endpoint.session_id === null ? "all" : "one",
    sessionId: endpoint.session_id ?? "",
    events: endpoint.event_types.length === 0 ? "all" : "chosen",
    types: [...endpoint.event_types],
    format: endpoint.format,
    ordered: endpoint.ordered,
  };
}

/** The fields of a request that creates the endpoint, or those that the form changed. `endpoint`: null for a new one. */
export function toFields(values: WebhookValues, endpoint: WebhookEndpoint | null): Record<string, unknown> {
  const after = allFields(values);
  return endpoint === null
    ? { ...after, ...(values.sessions === "one" ? { session_id: values.sessionId.trim() } : {}) }
    : pickChanged(allFields(valuesOf(endpoint)), after);
}

function allFields(values: WebhookValues): Record<string, unknown> {
  return {
    url: values.url.trim(),
    description: values.description.trim() || null,
    event_types: values.events === "all" ? [] : values.types,
    format: values.format,
    ordered: values.ordered,
  };
}

const FIELDS: Record<string, keyof WebhookValues> = {
  url: "url",
  description: "description",
  session_id: "sessionId",
  event_types: "types",
  format: "format",
  ordered: "ordered",
};

export function findField(field: string): keyof WebhookValues | null {
  return FIELDS[field.split(".", 1)[0] ?? ""] ?? null;
}

export const overlapSchema = z.object({
  hours: z
    .string()
    .trim()
    .refine(
      (text) => /^\d+$/.test(text) && Number(text) <= MAX_OVERLAP_HOURS,
      `Write a whole number of hours from 0 to ${MAX_OVERLAP_HOURS}.`,
    ),
});
