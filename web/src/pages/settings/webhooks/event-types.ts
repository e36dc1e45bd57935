// The types of events that an endpoint can receive, in groups. A browser test compares them with those of the server.
export const EVENT_GROUPS: readonly { title: string; types: readonly string[] }[] = [
  {
    title: "What needs a person",
    types: [
      "session.requires_action",
      "approval.requested",
      "approval.decided",
      "question.asked",
      "custom_tool.called",
    ],
  },
  {
    title: "How sessions do",
    types: [
      "session.status_run_started",
      "session.status_idled",
      "session.status_rescheduled",
      "session.status_terminated",
      "session.error",
      "limit.reached",
    ],
  },
  {
    title: "Sessions and subagents",
    types: [
      "session.created",
      "session.updated",
      "session.archived",
      "session.deleted",
      "session.thread_created",
      "session.thread_idled",
    ],
  },
  {
    title: "Steps",
    types: [
      "step.created",
      "step.updated",
      "step.moved",
      "step.started",
      "step.call_started",
      "step.ended",
      "step.playback",
    ],
  },
  { title: "Batches", types: ["batch.job_ended", "batch.ended"] },
  {
    title: "Schedules",
    types: [
      "deployment.created",
      "deployment.updated",
      "deployment.paused",
      "deployment.unpaused",
      "deployment.archived",
      "deployment_run.succeeded",
      "deployment_run.failed",
    ],
  },
];

const KNOWN = new Set(EVENT_GROUPS.flatMap((group) => group.types));

/** The groups, and one more for types that only the server knows. */
export function groupsWith(chosen: readonly string[]): typeof EVENT_GROUPS {
  const others = chosen.filter((type) => !KNOWN.has(type));
  return others.length === 0 ? EVENT_GROUPS : [...EVENT_GROUPS, { title: "Others", types: others }];
}

/** `all events`, `session.created`, `session.created and 2 more`. */
export function describeEvents(types: readonly string[]): string {
  const [first] = types;
  if (first === undefined) {
    return "all events";
  }
  return types.length === 1 ? first : `${first} and ${types.length - 1} more`;
}
