// The signed-in caller, and signing in and out.
import { queryOptions } from "@tanstack/react-query";

import { allowReading, request, setCsrfToken, stopReading } from "../client";
import type { Principal, SignInMethods } from "../contract";
import { keys } from "../keys";
import { queryClient } from "../query-client";

export const meQuery = queryOptions({
  queryKey: keys.me,
  queryFn: async ({ signal }) => adopt(await request<Principal>("GET", "/v1/me", { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export const signInMethodsQuery = queryOptions({
  queryKey: keys.signInMethods,
  queryFn: ({ signal }) => request<SignInMethods>("GET", "/v1/sign_in", { signal }),
});

/** Signs in with an API key or with the one-time code of `footplate dev`. */
export async function signIn(credentials: { api_key: string } | { one_time_code: string }): Promise<Principal> {
  const principal = adopt(await request<Principal>("POST", "/v1/browser_sessions", { body: credentials }));
  queryClient.clear();
  queryClient.setQueryData(keys.me, principal);
  return principal;
}

export async function signOut(): Promise<void> {
  stopReading();
  try {
    await request("DELETE", "/v1/browser_sessions/current");
  } catch (error) {
    allowReading();
    void queryClient.invalidateQueries();
    throw error;
  }
  setCsrfToken(null);
}

function adopt(principal: Principal): Principal {
  setCsrfToken(principal.csrf_token);
  allowReading();
  return principal;
}
