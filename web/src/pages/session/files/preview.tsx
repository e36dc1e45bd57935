// The content of the selected file, as far as a browser can show it safely.
import { useQuery } from "@tanstack/react-query";
import { ArrowLeft, Download, Trash2 } from "lucide-react";
import { Suspense, useCallback, useState } from "react";

import { Button } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { Time } from "@/design/components/time";
import { formatBytes } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { lazyPart } from "@/frame/lazy-part";
import { PathText } from "../changes/file-marks";
import type { SessionFile } from "./queries";
import { LARGEST_TEXT, type Preview as Content, readPreview } from "./read-content";

const TextView = lazyPart("The preview", () => import("./text-view"));

interface PreviewProps {
  file: SessionFile;
  /** Null: it cannot be deleted, or the role does not permit it. */
  onDelete: (() => void) | null;
  onDownload: () => void;
  onBack: () => void;
}

export function Preview({ file, onDelete, onDownload, onBack }: PreviewProps) {
  const { data, error, refetch } = useQuery({
    queryKey: ["file-preview", file.id],
    queryFn: ({ signal }) => readPreview(file, signal),
    // New content has a new id.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  });
  return (
    <section aria-label="Preview" className="flex min-h-0 min-w-0 flex-1 flex-col">
      <header className="flex min-h-11 items-center gap-2 border-b bg-surface px-3">
        <Button
          variant="quiet"
          size="icon"
          aria-label="Back to the list"
          className="-ml-2 size-11 md:hidden"
          onClick={onBack}
        >
          <ArrowLeft />
        </Button>
        <PathText path={file.name} />
        <CopyButton text={file.id} label="the ID of the file" className="shrink-0 max-md:hidden" />
        <span className="shrink-0 text-sm text-muted max-md:hidden">
          {formatBytes(file.size)} · <Time value={file.createdAt} />
        </span>
        <span className="ml-auto flex shrink-0 gap-1">
          {onDelete !== null && (
            <Button
              variant="quiet"
              size="icon"
              aria-label="Delete the output"
              title="Delete the output"
              className="max-md:size-11"
              onClick={onDelete}
            >
              <Trash2 />
            </Button>
          )}
          <Button className="max-md:h-11" shortcut="D" onClick={onDownload}>
            <Download />
            Download
          </Button>
        </span>
      </header>
      {file.place !== null && (
        <p className="border-b px-4 py-1 text-sm text-muted">
          The agent finds it at <SafeText className="font-mono">{file.place}</SafeText>
        </p>
      )}
      {error !== null && (
        <ErrorPanel className="m-4" title="The file could not be loaded" error={error} onRetry={() => void refetch()} />
      )}
      {data === undefined ? error === null && <SkeletonRows /> : <ContentView file={file} content={data} />}
    </section>
  );
}

function ContentView({ file, content }: { file: SessionFile; content: Content }) {
  switch (content.kind) {
    case "image":
      return <ImageView name={file.name} blob={content.blob} />;
    case "none":
      return <EmptyState title="No preview">{content.reason} Download it to open it.</EmptyState>;
    case "text":
      return (
        <>
          {content.isCut && (
            <p className="border-b bg-waiting-soft px-4 py-1 text-sm text-waiting">
              The first {formatBytes(LARGEST_TEXT)} of {formatBytes(file.size)} are shown. Download the file to see the
              rest.
            </p>
          )}
          {content.text === "" ? (
            <EmptyState title="This file is empty" />
          ) : (
            <Suspense fallback={<SkeletonRows />}>
              <TextView key={file.id} id={file.id} name={file.name} text={content.text} />
            </Suspense>
          )}
        </>
      );
  }
}

function ImageView({ name, blob }: { name: string; blob: Blob }) {
  const [isBroken, setBroken] = useState(false);
  const [size, setSize] = useState<string | null>(null);
  const show = useCallback(
    (image: HTMLImageElement | null) => {
      const url = URL.createObjectURL(blob);
      if (image !== null) {
        image.src = url;
      }
      return () => {
        URL.revokeObjectURL(url);
      };
    },
    [blob],
  );
  if (isBroken) {
    return <EmptyState title="No preview">The browser cannot read this image. Download it to open it.</EmptyState>;
  }
  return (
    <div className="flex min-h-0 flex-1 flex-col items-center justify-center gap-2 overflow-auto bg-code p-4">
      <img
        ref={show}
        alt={name}
        className="max-h-full min-h-0 max-w-full rounded-sm bg-white object-contain shadow-popup"
        onLoad={(event) => {
          const { naturalWidth, naturalHeight } = event.currentTarget;
          setSize(`${naturalWidth} × ${naturalHeight} pixels`);
        }}
        onError={() => {
          setBroken(true);
        }}
      />
      {size !== null && <p className="shrink-0 text-sm text-muted">{size}</p>}
    </div>
  );
}
