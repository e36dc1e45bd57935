// Checks the days that a person chooses.
import { z } from "@/design/zod";

import { countDays, isDay, LONGEST_DAYS } from "./period";

const day = z.string().refine(isDay, "Choose a day.");

export const ownPeriodSchema = z.object({ from: day, to: day }).superRefine((period, context) => {
  const days = countDays(period);
  if (days < 1) {
    context.addIssue({ code: "custom", path: ["to"], message: "Choose a day that is not before the first one." });
  } else if (days > LONGEST_DAYS) {
    context.addIssue({ code: "custom", path: ["to"], message: `Choose at most ${LONGEST_DAYS} days.` });
  }
});
