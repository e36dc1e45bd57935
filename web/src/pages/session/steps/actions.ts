// The actions of this tab. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const stepsActions = defineActions([]);
