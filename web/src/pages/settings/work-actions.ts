// The actions of the sections Agents, Environments, Projects and Webhooks. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const settingsWorkActions = defineActions([]);
