import { expect, test } from "vitest";

import { describeProviderError } from "./provider-error";

test("a reason of the server is explained, and the text of an address is never shown", () => {
  expect(describeProviderError("no_role")).toContain("None of your groups");
  expect(describeProviderError("Call +1 555 0100 to unlock")).toContain("was not accepted");
  expect(describeProviderError("__proto__")).toContain("was not accepted");
});
