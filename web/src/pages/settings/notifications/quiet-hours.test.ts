import { describe, expect, it } from "vitest";

import { findField, quietHoursSchema, toQuietHours, valuesOf } from "./quiet-hours";

const NIGHT = { start: "22:30", end: "06:00", timezone: "Europe/Berlin" };

describe("quiet hours", () => {
  it("are what was saved, or a night in the own time zone", () => {
    expect(toQuietHours(valuesOf(NIGHT, "UTC"))).toEqual(NIGHT);
    expect(valuesOf(null, "Asia/Tokyo")).toEqual({ isOn: false, start: "22:00", end: "07:00", timezone: "Asia/Tokyo" });
    expect(toQuietHours(valuesOf(null, "Asia/Tokyo"))).toBeNull();
  });

  it("must have a start, another end and a time zone", () => {
    const values = valuesOf(NIGHT, "UTC");
    expect(quietHoursSchema.safeParse(values).success).toBe(true);
    for (const wrong of [{ start: "" }, { end: "22:30" }, { timezone: " " }]) {
      expect(quietHoursSchema.safeParse({ ...values, ...wrong }).success).toBe(false);
    }
    expect(quietHoursSchema.safeParse({ ...values, end: "22:30", isOn: false }).success).toBe(true);
  });

  it("show a refusal at its field", () => {
    expect(findField("quiet_hours.timezone: there is no time zone 'Mars'")).toBe("timezone");
    expect(findField("quiet_hours: start and end are the same time")).toBe("end");
    expect(findField("The server does not respond.")).toBe("root");
  });
});
