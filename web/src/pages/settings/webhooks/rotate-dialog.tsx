// Replaces the secret of an endpoint. For some hours, both secrets sign.
import { zodResolver } from "@hookform/resolvers/zod";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useForm } from "react-hook-form";

import { keys } from "@/api/keys";
import { type NewWebhookEndpoint, rotateSecret, type WebhookEndpoint } from "@/api/queries/webhooks";
import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";

import { MAX_OVERLAP_HOURS, overlapSchema } from "./model";

const HOUR_SECONDS = 3600;

interface Props {
  endpoint: WebhookEndpoint;
  onRotated: (endpoint: NewWebhookEndpoint) => void;
  onClose: () => void;
}

export function RotateDialog({ endpoint, onRotated, onClose }: Props) {
  const queries = useQueryClient();
  const form = useForm({ resolver: zodResolver(overlapSchema), defaultValues: { hours: "24" } });
  const [failure, setFailure] = useState<unknown>(null);
  const submit = form.handleSubmit(async ({ hours }) => {
    try {
      onRotated(await rotateSecret(endpoint.id, Number(hours) * HOUR_SECONDS));
      void queries.invalidateQueries({ queryKey: keys.webhooks });
      onClose();
    } catch (error) {
      setFailure(error);
    }
  });
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
        title="Replace the secret?"
        description="The new one is shown once. Meanwhile, each request has two signatures, so that receivers can change at any time."
        footer={
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button variant="primary" disabled={form.formState.isSubmitting} onClick={() => void submit()}>
              Replace the secret
            </Button>
          </>
        }
      >
        <form
          className="flex flex-col gap-3"
          onSubmit={(event) => {
            event.preventDefault();
            void submit();
          }}
        >
          <Field
            label="Hours for which the old secret stays valid"
            error={form.formState.errors.hours?.message}
            hint={`At most ${MAX_OVERLAP_HOURS}. With 0, it is invalid at once.`}
          >
            {(field) => <Input {...field} {...form.register("hours")} inputMode="numeric" />}
          </Field>
          {failure !== null && <ErrorPanel title="The secret was not replaced" error={failure} />}
        </form>
      </DialogContent>
    </Dialog>
  );
}
