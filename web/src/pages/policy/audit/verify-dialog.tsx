// Verifies the chain of hashes of the audit trail, and that a head that was saved earlier is still in it.
import { useQuery } from "@tanstack/react-query";
import { CircleAlert, CircleCheck } from "lucide-react";
import { useState } from "react";

import { keys } from "@/api/keys";
import { type AuditVerification, verifyAudit } from "@/api/queries/policy";
import { Button } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { SafeText } from "@/design/text/text";

const HEAD = /^[0-9a-f]{64}$/;

export function VerifyDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [head, setHead] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | undefined>();
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: [...keys.audit, "verification", head],
    queryFn: () => verifyAudit(head),
    retry: false,
    staleTime: 0,
    gcTime: 0,
  });
  function verify(): void {
    const wanted = text.trim().toLowerCase();
    if (wanted !== "" && !HEAD.test(wanted)) {
      setProblem("A head has 64 digits from 0 to 9 and a to f.");
      return;
    }
    setProblem(undefined);
    const next = wanted === "" ? null : wanted;
    if (next === head) {
      void refetch();
    } else {
      setHead(next);
    }
  }
  return (
    <Dialog
      open
      onOpenChange={(isOpen) => {
        if (!isOpen) {
          onClose();
        }
      }}
    >
      <DialogContent
        title="Verify the audit trail"
        description="Recomputes the hash of every entry and of every batch."
        className="w-[40rem]"
        footer={
          <>
            <Button onClick={onClose}>Close</Button>
            <Button variant="primary" disabled={isFetching} onClick={verify}>
              Verify again
            </Button>
          </>
        }
      >
        <div className="flex flex-col gap-4">
          {isFetching && (
            <p role="status" className="text-muted">
              Verifying every entry …
            </p>
          )}
          {!isFetching && error !== null && <ErrorPanel title="The trail could not be verified" error={error} />}
          {!isFetching && error === null && data !== undefined && <Result found={data} head={head} />}
          <Field
            label="Head that you saved earlier"
            error={problem}
            hint="Optional. It finds a trail whose end was cut off."
          >
            {(field) => (
              <Input
                {...field}
                className="font-mono"
                value={text}
                onValueChange={setText}
                onKeyDown={(event) => {
                  if (event.key === "Enter") {
                    verify();
                  }
                }}
              />
            )}
          </Field>
        </div>
      </DialogContent>
    </Dialog>
  );
}

function Result({ found, head }: { found: AuditVerification; head: string | null }) {
  const { entries, batches, unsealed, faults } = found;
  const count = (number: number, noun: string): string =>
    `${number.toLocaleString("en-US")} ${number === 1 ? noun : noun === "entry" ? "entries" : `${noun}es`}`;
  return (
    <div role="status" aria-label="Verification" className="flex flex-col gap-2">
      {faults.length === 0 ? (
        <p className="flex items-center gap-2 font-medium text-success">
          <CircleCheck aria-hidden className="size-4 shrink-0" />
          {head === null
            ? "No entry was changed, removed or moved."
            : "Nothing was changed, and the saved head is in it."}
        </p>
      ) : (
        <>
          <p className="flex items-center gap-2 font-medium text-failed">
            <CircleAlert aria-hidden className="size-4 shrink-0" />
            {faults.length === 1
              ? "The trail has a fault"
              : `The trail has ${faults.length.toLocaleString("en-US")} faults`}
          </p>
          <ul className="list-disc pl-6">
            {faults.map((fault) => (
              <li key={fault}>
                <SafeText>{fault}</SafeText>
              </li>
            ))}
          </ul>
          <p className="text-muted">
            Compare the entries with an export that you keep elsewhere. If entries are not sealed, check that a worker
            is running.
          </p>
        </>
      )}
      <p className="text-muted">
        {count(entries, "entry")} in {count(batches, "batch")}
        {unsealed > 0 && `, ${unsealed.toLocaleString("en-US")} not sealed yet`}. Save the head elsewhere to detect
        later that the end was cut off:
      </p>
      <CopyButton text={found.head} label={`the head ${found.head}`} showText className="self-start" />
    </div>
  );
}
