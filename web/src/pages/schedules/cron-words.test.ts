import { describe, expect, it } from "vitest";

import { describeCron } from "./cron-words";

describe("a cron expression in words", () => {
  it.each([
    ["0 9 * * 1-5", "At 09:00, Monday to Friday"],
    ["0 9,17 * * *", "At 09:00 and 17:00, every day"],
    ["30 8 1 * *", "At 08:30, on day 1 of the month"],
    ["* * * * *", "Every minute"],
    ["*/15 * * * *", "Every 15 minutes"],
    ["0 * * * *", "Every hour"],
    ["0 */6 * * *", "Every 6 hours"],
    ["5 * * * *", "At minute 5 of every hour"],
    ["*/10 9-17 * * mon-fri", "Every 10 minutes of hours 9 to 17, Monday to Friday"],
    ["0 0 1,15 * 5", "At 00:00, on days 1 and 15 of the month or Friday"],
    ["0 0 */2 * 5", "At 00:00, on days 1 to 31 (every 2nd day) of the month, only Friday"],
    ["0 0 * jan,jul sun", "At 00:00, Sunday, in January and July"],
    ["0 0 * * 7", "At 00:00, Sunday"],
    ["0 22 * * 0,6", "At 22:00, Sunday and Saturday"],
  ])("%s", (expression, words) => {
    expect(describeCron(expression)).toBe(words);
  });

  it.each(["", "@daily", "0 9 * *", "0 25 * * *", "0 9 L * *", "0 9 * * 5#2", "5-1 * * * *", "0 9 * foo *"])(
    "leaves %j to the server",
    (expression) => {
      expect(describeCron(expression)).toBeNull();
    },
  );
});
