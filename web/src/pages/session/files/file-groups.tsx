// The list of a session's files: outputs, attachments, and what could not be stored.
import { File, FileImage } from "lucide-react";
import type { ReactNode } from "react";

import { formatBytes } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { PathText } from "../changes/file-marks";
import type { SessionFile } from "./queries";
import { imageType } from "./read-content";

interface FileGroupsProps {
  outputs: readonly SessionFile[];
  attachments: readonly SessionFile[];
  omitted: readonly string[];
  /** Attachments that no longer exist. */
  missing: number;
  selectedId: string | null;
  onSelect: (file: SessionFile) => void;
}

export function FileGroups({ outputs, attachments, omitted, missing, selectedId, onSelect }: FileGroupsProps) {
  const rows = (files: readonly SessionFile[]): ReactNode =>
    files.map((file) => (
      <li key={file.id}>
        <button
          type="button"
          aria-current={file.id === selectedId}
          title={file.name}
          className="flex h-9 w-full items-center gap-2 rounded-md px-2 text-left outline-offset-[-2px] hover:bg-hover aria-[current=true]:bg-selected max-md:h-12"
          onClick={() => {
            onSelect(file);
          }}
        >
          {imageType(file.name) === null ? (
            <File aria-hidden className="size-4 shrink-0 text-muted" />
          ) : (
            <FileImage aria-hidden className="size-4 shrink-0 text-muted" />
          )}
          <PathText path={file.name} className="flex-1" />
          <span className="shrink-0 text-xs text-muted">{formatBytes(file.size)}</span>
        </button>
      </li>
    ));
  return (
    <>
      {outputs.length > 0 && (
        <Group title="Outputs" count={outputs.length}>
          <ul aria-label="Outputs">{rows(outputs)}</ul>
        </Group>
      )}
      {omitted.length > 0 && (
        <Group title="Not stored" count={omitted.length}>
          <ul aria-label="Not stored" className="flex flex-col gap-1 px-2 text-sm">
            {omitted.map((line) => (
              <li key={line} className="break-words text-waiting">
                <SafeText limit={500}>{line}</SafeText>
              </li>
            ))}
          </ul>
        </Group>
      )}
      {(attachments.length > 0 || missing > 0) && (
        <Group title="Attachments" count={attachments.length}>
          <ul aria-label="Attachments">{rows(attachments)}</ul>
          {missing > 0 && (
            <p className="px-2 text-sm text-muted">
              {missing === 1 ? "1 attachment was" : `${missing} attachments were`} deleted or expired.
            </p>
          )}
        </Group>
      )}
    </>
  );
}

function Group({ title, count, children }: { title: string; count: number; children: ReactNode }) {
  return (
    <section className="px-1 pt-2 pb-1">
      <h2 className="px-2 py-1 text-sm font-medium text-muted">
        {title} <span className="font-normal">{count}</span>
      </h2>
      {children}
    </section>
  );
}
