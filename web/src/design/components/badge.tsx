// A short label, such as a count or a kind.
import { cva, type VariantProps } from "class-variance-authority";
import type { ReactNode } from "react";

import { cn } from "../classes";

const style = cva("inline-flex h-5 items-center rounded-sm px-1.5 text-xs font-medium whitespace-nowrap", {
  variants: {
    tone: {
      neutral: "bg-hover text-muted",
      accent: "bg-accent-soft text-accent",
      waiting: "bg-waiting-soft text-waiting",
      failed: "bg-failed-soft text-failed",
      success: "bg-success-soft text-success",
    },
  },
  defaultVariants: { tone: "neutral" },
});

export function Badge({
  tone,
  className,
  children,
}: VariantProps<typeof style> & { className?: string; children: ReactNode }) {
  return <span className={cn(style({ tone }), className)}>{children}</span>;
}
