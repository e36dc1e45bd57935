// Text of a person: as it is written, folded if it is long.
import { SafeText } from "@/design/text/text";

import { useConversation, useIsOpen } from "./context";

const FOLDED_LINES = 12;
const FOLDED_CHARACTERS = 1_200;
const SHOWN = 50_000;

export function LongText({ text, itemKey }: { text: string; itemKey: string }) {
  const { toggle } = useConversation();
  const isOpen = useIsOpen(itemKey);
  const lines = text.split("\n");
  const isLong = lines.length > FOLDED_LINES || text.length > FOLDED_CHARACTERS;
  const shown = isLong && !isOpen ? lines.slice(0, FOLDED_LINES).join("\n").slice(0, FOLDED_CHARACTERS) : text;
  return (
    <div className="break-words whitespace-pre-wrap [overflow-wrap:anywhere]" dir="auto">
      <SafeText limit={SHOWN}>{shown}</SafeText>
      {isLong && (
        <button
          type="button"
          className="block min-h-6 text-sm text-accent hover:underline"
          onClick={() => {
            toggle(itemKey);
          }}
        >
          {isOpen ? "Show less" : `Show all ${lines.length > 1 ? `${lines.length.toLocaleString()} lines` : "of it"}`}
        </button>
      )}
    </div>
  );
}
