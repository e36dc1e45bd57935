// The choice of the first and the last day of the report.
import { zodResolver } from "@hookform/resolvers/zod";
import { useForm } from "react-hook-form";

import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";

import { ownPeriodSchema } from "./own-period-schema";
import type { Period } from "./period";

interface Props {
  period: Period;
  onApply: (period: Period) => void;
  onClose: () => void;
}

export function OwnPeriodDialog({ period, onApply, onClose }: Props) {
  const { register, handleSubmit, formState } = useForm<Period>({
    resolver: zodResolver(ownPeriodSchema),
    defaultValues: period,
  });
  const { errors } = formState;
  const formId = "usage-period";
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
        title="Choose the days"
        description="Days begin and end at midnight UTC."
        className="w-96"
        footer={
          <>
            <Button onClick={onClose} className="max-md:h-11">
              Cancel
            </Button>
            <Button variant="primary" type="submit" form={formId} className="max-md:h-11">
              Show
            </Button>
          </>
        }
      >
        <form
          id={formId}
          noValidate
          className="flex gap-3 *:flex-1"
          onSubmit={(event) => void handleSubmit(onApply)(event)}
        >
          <Field label="First day" error={errors.from?.message}>
            {(control) => <Input type="date" {...control} {...register("from")} />}
          </Field>
          <Field label="Last day" error={errors.to?.message}>
            {(control) => <Input type="date" {...control} {...register("to")} />}
          </Field>
        </form>
      </DialogContent>
    </Dialog>
  );
}
