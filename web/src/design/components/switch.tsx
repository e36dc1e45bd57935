// A setting that is on or off and takes effect at once.
import { Switch as Base } from "@base-ui/react/switch";
import type { ReactNode } from "react";

export function Switch({
  children,
  ...props
}: Omit<Base.Root.Props, "className" | "children"> & { children: ReactNode }) {
  return (
    <label className="flex items-center gap-2">
      <Base.Root
        className="flex h-5 w-8 shrink-0 rounded-full bg-line-strong p-0.5 transition-colors data-checked:bg-accent data-disabled:opacity-50"
        {...props}
      >
        <Base.Thumb className="size-4 rounded-full bg-canvas transition-transform data-checked:translate-x-3" />
      </Base.Root>
      {children}
    </label>
  );
}
