// Searches what the terminal has printed.
import { ArrowDown, ArrowUp, X } from "lucide-react";
import { useState } from "react";

import { Button } from "@/design/components/button";
import { Input } from "@/design/components/input";

interface Props {
  onFind: (text: string, direction: "next" | "previous") => boolean;
  onClose: () => void;
}

export function SearchBar({ onFind, onClose }: Props) {
  const [text, setText] = useState("");
  const [hasMatch, setHasMatch] = useState(true);

  function find(direction: "next" | "previous", what = text): void {
    setHasMatch(what === "" || onFind(what, direction));
  }

  return (
    <div role="search" className="flex shrink-0 items-center gap-2 border-b px-4 py-1">
      <Input
        // The bar is opened to type in it.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        aria-label="Search in the terminal"
        className="max-w-80"
        value={text}
        onValueChange={(value) => {
          setText(value);
          find("previous", value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") {
            find(event.shiftKey ? "next" : "previous");
          } else if (event.key === "Escape") {
            onClose();
          }
        }}
      />
      <Button
        variant="quiet"
        size="icon"
        aria-label="Previous match"
        onClick={() => {
          find("previous");
        }}
      >
        <ArrowUp />
      </Button>
      <Button
        variant="quiet"
        size="icon"
        aria-label="Next match"
        onClick={() => {
          find("next");
        }}
      >
        <ArrowDown />
      </Button>
      <span role="status" className="text-sm text-muted">
        {hasMatch ? "" : "No match"}
      </span>
      <Button variant="quiet" size="icon" aria-label="Close the search" className="ml-auto" onClick={onClose}>
        <X />
      </Button>
    </div>
  );
}
