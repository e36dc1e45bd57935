// Sign-in: with the organisation's provider, an API key, or the one-time link of `footplate dev`.
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { type SubmitEvent, useEffect, useEffectEvent, useRef, useState } from "react";

import { ApiError } from "@/api/errors";
import { signIn, signInMethodsQuery } from "@/api/queries/me";
import { Button, buttonStyle } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { safeReturnPath } from "@/frame/search";
import { describeProviderError } from "./provider-error";

const route = getRouteApi("/sign-in");

export default function SignInPage() {
  const { return_to, code, error: reason } = route.useSearch();
  const router = useRouter();
  const methods = useQuery(signInMethodsQuery);
  const [key, setKey] = useState("");
  const returnPath = safeReturnPath(return_to);
  const login = useMutation({
    mutationFn: signIn,
    onSuccess: () => {
      router.history.replace(returnPath);
    },
  });

  useEffect(() => {
    document.title = "Sign in · Footplate";
  }, []);

  const hasUsedCode = useRef(false);
  const takeCode = useEffectEvent((once: string) => {
    if (!hasUsedCode.current) {
      hasUsedCode.current = true;
      // The code works once, but an address that stays in the history should not have it.
      router.history.replace(`/sign-in${return_to === undefined ? "" : `?return_to=${encodeURIComponent(return_to)}`}`);
      login.mutate({ one_time_code: once });
    }
  });
  useEffect(() => {
    if (code !== undefined) {
      takeCode(code);
    }
  }, [code]);

  function submit(event: SubmitEvent): void {
    event.preventDefault();
    login.mutate({ api_key: key.trim() });
  }

  const isRefused = login.error instanceof ApiError && login.error.status === 401;
  return (
    <main className="flex h-dvh flex-col items-center justify-center overflow-y-auto p-4">
      <div className="flex w-full max-w-sm flex-col gap-6">
        <header className="flex items-center gap-3">
          <img src="/icon.svg" alt="" className="size-8" />
          <h1 className="text-xl font-semibold">Sign in to Footplate</h1>
        </header>
        {reason !== undefined && login.isIdle && (
          <ErrorPanel title="You are not signed in" error={new Error(describeProviderError(reason))} />
        )}
        {methods.data?.oidc != null && (
          <>
            <a
              href={`/v1/sign_in/oidc?return_to=${encodeURIComponent(returnPath)}`}
              className={buttonStyle({ variant: "primary", size: "lg" })}
            >
              Continue with {methods.data.oidc.name}
            </a>
            <p className="text-center text-sm text-muted">or use an API key</p>
          </>
        )}
        <form onSubmit={submit} className="flex flex-col gap-4">
          <Field
            label="API key"
            hint={
              <>
                <code>footplate dev</code> prints one. Your administrator can create one for you.
              </>
            }
            error={isRefused ? "This key is not valid. Check that you copied all of it." : undefined}
          >
            {(control) => (
              <Input
                {...control}
                type="password"
                name="api-key"
                autoComplete="current-password"
                required
                value={key}
                onValueChange={setKey}
              />
            )}
          </Field>
          {login.error !== null && !isRefused && <ErrorPanel title="Signing in failed" error={login.error} />}
          <Button
            type="submit"
            variant={methods.data?.oidc == null ? "primary" : "secondary"}
            disabled={login.isPending || key.trim() === ""}
          >
            {login.isPending ? "Signing in …" : "Sign in"}
          </Button>
        </form>
      </div>
    </main>
  );
}
