// The form of the quiet hours: its values, what is wrong with them, and what is sent.
import type { QuietHours } from "@/api/queries/notifications";
import { z } from "@/design/zod";

export const quietHoursSchema = z
  .object({
    isOn: z.boolean(),
    start: z.string().regex(/^\d\d:\d\d$/, "Choose a time."),
    end: z.string().regex(/^\d\d:\d\d$/, "Choose a time."),
    timezone: z.string().trim().min(1, "Choose a time zone."),
  })
  .refine((values) => !values.isOn || values.start !== values.end, {
    path: ["end"],
    message: "The end must be another time than the start.",
  });
export type QuietHoursValues = z.infer<typeof quietHoursSchema>;

const NIGHT = { start: "22:00", end: "07:00" };

export function valuesOf(hours: QuietHours | null, ownTimezone: string): QuietHoursValues {
  return { isOn: hours !== null, ...(hours ?? { ...NIGHT, timezone: ownTimezone }) };
}

export function toQuietHours(values: QuietHoursValues): QuietHours | null {
  return values.isOn ? { start: values.start, end: values.end, timezone: values.timezone } : null;
}

/** The field that a refusal of the server is about. */
export function findField(message: string): "timezone" | "end" | "root" {
  if (message.startsWith("quiet_hours.timezone")) {
    return "timezone";
  }
  return message.startsWith("quiet_hours") ? "end" : "root";
}
