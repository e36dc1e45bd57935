// A state: an icon and a word, so that it does not depend on its colour.
import type { ComponentType } from "react";

import { cn } from "../classes";

interface MarkProps {
  icon: ComponentType<{ className?: string }>;
  text: string;
  className?: string | undefined;
  title?: string | undefined;
}

export function Mark({ icon: Icon, text, className, title }: MarkProps) {
  return (
    <span
      title={title}
      className={cn("inline-flex shrink-0 items-center gap-1.5 font-medium whitespace-nowrap text-muted", className)}
    >
      <Icon aria-hidden className="size-4 shrink-0" />
      {text}
    </span>
  );
}
