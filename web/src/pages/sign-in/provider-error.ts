// What a failed sign-in through the identity provider means, and what to do, by the reason in the address.
const MESSAGES = new Map([
  ["no_role", "None of your groups gives you a role here. Ask your administrator."],
  ["member_disabled", "Your account here is disabled. Ask your administrator."],
  [
    "state_invalid",
    "The sign-in was started in another browser, was used before, or took longer than 10 minutes. Sign in again.",
  ],
  ["provider_refused", "Your identity provider did not sign you in. Try again, or ask your administrator."],
  ["provider_unavailable", "Your identity provider does not respond. Try again in some minutes."],
  ["sign_in_limit_exceeded", "There were too many attempts from your address. Wait some minutes, then sign in again."],
  ["unavailable", "The database of the server did not respond. Sign in again."],
]);
const OTHER =
  "The response of your identity provider was not accepted. Sign in again. If it fails again, ask your administrator: " +
  "the log of the server has the reason.";

/** The reason comes from the address, so it is never shown itself. */
export function describeProviderError(reason: string): string {
  return MESSAGES.get(reason) ?? OTHER;
}
