// Starts the session of a draft, or the session whose step starts its attempts.
import { addSteps, createEnvironment } from "@/api/queries/new-session";
import { createSession, deleteSession } from "@/api/queries/sessions";

import { type AgentDefaults, type Draft, toRequests } from "./draft";

export interface Started {
  sessionId: string;
  attempts: number;
}

export async function startSession(draft: Draft, agent: AgentDefaults): Promise<Started> {
  const environmentId = draft.environmentId ?? (await createEnvironment("default")).id;
  const { session, steps } = toRequests({ ...draft, environmentId }, agent);
  const created = await createSession(session);
  if (steps.length > 0) {
    try {
      await addSteps(created.id, steps);
    } catch (error) {
      // Without its attempts, the session is of no use.
      await deleteSession(created.id).catch(() => undefined);
      throw error;
    }
  }
  return { sessionId: created.id, attempts: draft.attempts };
}
