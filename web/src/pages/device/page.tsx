// Confirms `footplate login` on another device: the caller compares the code and approves or denies it.
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type SubmitEvent, useState } from "react";

import { request } from "@/api/client";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { SkeletonRows } from "@/design/components/skeleton";
import { SafeText } from "@/design/text/text";
import { usePageTitle } from "@/frame/page-title";

type Decision = "approve" | "deny";

const route = getRouteApi("/frame/device");

export default function DevicePage() {
  usePageTitle("Sign in a device");
  const { user_code: code } = route.useSearch();
  return (
    <div className="mx-auto w-full max-w-md p-4">
      {code === undefined ? <CodeForm /> : <Decide key={code} code={code} />}
    </div>
  );
}

function CodeForm() {
  const navigate = route.useNavigate();
  const [code, setCode] = useState("");
  function submit(event: SubmitEvent): void {
    event.preventDefault();
    void navigate({ search: { user_code: code.trim() } });
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 py-8">
      <Field label="Code" hint="`footplate login` shows it on the other device.">
        {(control) => (
          <Input {...control} value={code} autoComplete="off" required onValueChange={setCode} className="font-mono" />
        )}
      </Field>
      <Button type="submit" variant="primary" disabled={code.trim() === ""}>
        Continue
      </Button>
    </form>
  );
}

function Decide({ code }: { code: string }) {
  const path = `/v1/device_authorizations/${encodeURIComponent(code)}`;
  const authorization = useQuery({
    queryKey: ["device", code],
    queryFn: ({ signal }) => request("GET", path, { signal }),
  });
  const decide = useMutation({ mutationFn: (decision: Decision) => request("POST", path, { body: { decision } }) });
  if (authorization.isPending) {
    return <SkeletonRows count={3} />;
  }
  if (authorization.error !== null) {
    return <ErrorPanel title="The code cannot be used" error={authorization.error} />;
  }
  if (decide.isSuccess) {
    return (
      <EmptyState title={decide.variables === "approve" ? "The device is signed in" : "The device was refused"}>
        You can close this page.
      </EmptyState>
    );
  }
  return (
    <div className="flex flex-col gap-4 py-8">
      <h2 className="text-lg font-semibold">Sign in another device?</h2>
      <p>
        It acts with your permissions. Approve it only if you started <code>footplate login</code> yourself and it shows
        this code:
      </p>
      <p className="rounded-md bg-code py-4 text-center font-mono text-xl tracking-widest">
        <SafeText>{code}</SafeText>
      </p>
      {decide.error !== null && <ErrorPanel error={decide.error} />}
      <div className="flex gap-2">
        <Button
          variant="primary"
          disabled={decide.isPending}
          onClick={() => {
            decide.mutate("approve");
          }}
        >
          Approve
        </Button>
        <Button
          variant="danger"
          disabled={decide.isPending}
          onClick={() => {
            decide.mutate("deny");
          }}
        >
          Deny
        </Button>
      </div>
    </div>
  );
}
