import { describe, expect, it } from "vitest";

import { type BulkRun, runBulk } from "./bulk";
import type { SessionRow } from "./rows";

const rows = Array.from({ length: 20 }, (_, index) => ({ id: `sesn_${index}` }) as SessionRow);

describe("runBulk", () => {
  it("changes each session once, reports progress, and says what failed", async () => {
    const changed: string[] = [];
    const reports: BulkRun[] = [];
    const run = await runBulk(
      "pause",
      rows,
      (report) => reports.push(report),
      (id) => {
        changed.push(id);
        return id === "sesn_3" ? Promise.reject(new Error("it has ended")) : Promise.resolve();
      },
    );
    expect(new Set(changed).size).toBe(rows.length);
    expect(reports.map((report) => report.done)).toEqual(Array.from({ length: 21 }, (_, index) => index));
    expect(run.failures.map(({ row }) => row.id)).toEqual(["sesn_3"]);
    expect(run.isFinished).toBe(true);
  });
});
