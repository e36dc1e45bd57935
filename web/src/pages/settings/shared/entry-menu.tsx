// The menu of an entry. Opening it selects the entry, so that its shortcuts act on it.
import { Ellipsis } from "lucide-react";
import type { ReactNode } from "react";

import { Button } from "@/design/components/button";
import { Menu, MenuContent, MenuTrigger } from "@/design/components/menu";

interface Props {
  name: string;
  onOpen: () => void;
  children: ReactNode;
}

export function EntryMenu({ name, onOpen, children }: Props) {
  return (
    <Menu
      onOpenChange={(isOpen) => {
        if (isOpen) {
          onOpen();
        }
      }}
    >
      <MenuTrigger
        render={
          <Button
            variant="quiet"
            size="icon"
            aria-label={`More for ${name}`}
            className="-my-1 max-md:absolute max-md:top-1 max-md:right-1 max-md:my-0 max-md:size-11"
          />
        }
      >
        <Ellipsis />
      </MenuTrigger>
      <MenuContent align="end">{children}</MenuContent>
    </Menu>
  );
}

/** The name of an entry, which selects it, and marks beside it. */
export function EntryName({
  children,
  marks,
  onSelect,
}: {
  children: ReactNode;
  marks?: ReactNode;
  onSelect: () => void;
}) {
  return (
    <span className="flex min-w-0 items-center gap-2 max-md:order-first max-md:basis-full max-md:pr-12">
      <button
        type="button"
        className="min-w-0 truncate text-left font-medium hover:underline max-md:min-h-8"
        onClick={onSelect}
      >
        {children}
      </button>
      {marks}
    </span>
  );
}
