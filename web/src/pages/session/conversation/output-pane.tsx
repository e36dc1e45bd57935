// The whole output of a call beside the conversation: searched, copied and downloaded.
import { useVirtualizer } from "@tanstack/react-virtual";
import { Download } from "lucide-react";
import { useMemo, useRef, useState } from "react";

import { Button } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { Input } from "@/design/components/input";
import { Sheet, SheetContent } from "@/design/components/sheet";
import { formatBytes } from "@/design/format";
import { SafeText } from "@/design/text/text";

import { callLabel, inputOf, type ToolCall, toolName } from "../log/tool-calls";
import { downloadText, outputOf } from "./output";

const LINE_HEIGHT = 20;
const LONGEST_LINE = 4_000;

export default function OutputPane({ call, onClose }: { call: ToolCall; onClose: () => void }) {
  return (
    <Sheet
      open
      onOpenChange={(isOpen) => {
        if (!isOpen) {
          onClose();
        }
      }}
    >
      <SheetContent title={`Output of ${toolName(call.use)}`} className="w-[56rem]">
        <Output call={call} />
      </SheetContent>
    </Sheet>
  );
}

function Output({ call }: { call: ToolCall }) {
  const [search, setSearch] = useState("");
  const text = outputOf(call);
  const lines = useMemo(() => {
    const words = search.trim().toLowerCase();
    return text
      .split("\n")
      .map((line, index) => ({ line, number: index + 1 }))
      .filter(({ line }) => words === "" || line.toLowerCase().includes(words));
  }, [text, search]);
  const scroller = useRef<HTMLDivElement>(null);
  // oxlint-disable-next-line react/incompatible-library -- the React compiler is not used
  const list = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 20,
  });
  const total = text.split("\n").length;
  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b px-4 py-2">
        <SafeText className="w-full truncate font-mono text-sm text-muted">
          {callLabel(inputOf(call)).replace(/\s+/g, " ").slice(0, 400)}
        </SafeText>
        <Input
          aria-label="Search the output"
          placeholder="Search the output"
          className="min-w-0 flex-1"
          value={search}
          onValueChange={setSearch}
        />
        <span className="text-sm text-muted" role="status">
          {search.trim() === ""
            ? `${total.toLocaleString()} lines, ${formatBytes(text.length)}`
            : `${lines.length.toLocaleString()} of ${total.toLocaleString()} lines`}
        </span>
        <CopyButton text={text} label="the output" className="size-8" />
        <Button
          onClick={() => {
            downloadText(`${toolName(call.use)}-${call.use.id}.txt`, text);
          }}
        >
          <Download aria-hidden /> Download
        </Button>
      </div>
      <div
        ref={scroller}
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a box that scrolls must be reachable by keyboard
        tabIndex={0}
        role="region"
        aria-label="Output"
        className="min-h-0 flex-1 overflow-auto bg-code font-mono text-sm outline-offset-[-2px]"
      >
        <div className="relative w-max min-w-full" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map(({ index, start }) => {
            const { line, number } = lines[index] ?? { line: "", number: 0 };
            return (
              <div
                key={number}
                className="absolute top-0 left-0 flex h-5 whitespace-pre"
                style={{ transform: `translateY(${start}px)` }}
              >
                <span
                  aria-hidden
                  className="sticky left-0 w-14 shrink-0 bg-code pr-3 text-right text-faint select-none"
                >
                  {number}
                </span>
                <SafeText limit={LONGEST_LINE} className="pr-4">
                  {line}
                </SafeText>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
