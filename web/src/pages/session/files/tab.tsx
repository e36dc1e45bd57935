// Files of a session: what its agent left for people, and what people attached.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import { request } from "@/api/client";
import { meQuery } from "@/api/queries/me";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { showToast } from "@/design/components/toast";
import { cn } from "@/design/classes";
import { SafeText } from "@/design/text/text";
import { compact } from "@/frame/search";
import { download } from "../changes/download";
import { useFeedRefresh } from "../changes/use-refresh";
import { FileGroups } from "./file-groups";
import { Preview } from "./preview";
import { attachmentsQuery, contentUrl, filesKeys, outputsQuery, type SessionFile } from "./queries";

export default function FilesTab({ session }: { session: Session }) {
  const search = useSearch({ from: "/frame/sessions/$sessionId" });
  const navigate = useNavigate();
  const queries = useQueryClient();
  const { data: me } = useQuery(meQuery);
  const outputs = useQuery(outputsQuery(session.id));
  const attachments = useQuery(attachmentsQuery(session));
  const [deleting, setDeleting] = useState<SessionFile | null>(null);
  useFeedRefresh(
    session.id,
    (change) => change.type.startsWith("session."),
    () => void queries.invalidateQueries({ queryKey: filesKeys.all(session.id) }),
  );

  const files = [...(outputs.data?.files ?? []), ...(attachments.data?.files ?? [])];
  const wanted = search.file;
  const selected = files.find((file) => file.id === wanted) ?? (wanted === undefined ? files[0] : undefined);
  const canOperate = me?.permissions.includes("operate") ?? false;

  function select(file: SessionFile | undefined): void {
    void navigate({
      to: "/sessions/$sessionId",
      params: { sessionId: session.id },
      search: compact({ ...search, tab: "files", file: file?.id }) as typeof search,
      replace: true,
      resetScroll: false,
    });
  }
  function move(step: 1 | -1): void {
    const index = files.findIndex((file) => file.id === selected?.id);
    select(files[Math.min(Math.max(index + step, 0), files.length - 1)]);
  }
  async function remove(file: SessionFile): Promise<void> {
    setDeleting(null);
    try {
      await request("DELETE", `/v1/files/${encodeURIComponent(file.id)}`);
      select(undefined);
      showToast({ title: "Output deleted" });
    } catch (error) {
      showToast({
        title: "The output was not deleted",
        description: error instanceof Error ? error.message : String(error),
        tone: "failed",
      });
    } finally {
      void queries.invalidateQueries({ queryKey: filesKeys.all(session.id) });
    }
  }
  const save = (file: SessionFile): void => {
    download(contentUrl(file.id), file.name.split("/").at(-1) ?? file.name);
  };
  const askDelete =
    selected?.isOutput === true && canOperate
      ? () => {
          setDeleting(selected);
        }
      : null;
  useActions({
    ...(files.length > 0
      ? {
          "files.next": () => {
            move(1);
          },
          "files.previous": () => {
            move(-1);
          },
        }
      : {}),
    ...(selected === undefined
      ? {}
      : {
          "files.download": () => {
            save(selected);
          },
        }),
    ...(askDelete === null ? {} : { "files.delete": askDelete }),
  });

  const error = outputs.error ?? attachments.error;
  if (error !== null && files.length === 0) {
    return (
      <div className="p-4">
        <ErrorPanel
          title="The files could not be loaded"
          error={error}
          onRetry={() => void queries.invalidateQueries({ queryKey: filesKeys.all(session.id) })}
        />
      </div>
    );
  }
  if (outputs.isPending || attachments.isPending) {
    return <SkeletonRows />;
  }
  const omitted = outputs.data?.omitted ?? [];
  if (files.length === 0 && omitted.length === 0) {
    return (
      <EmptyState title="No files yet" command={`footplate files ls --session ${session.id}`}>
        Ask the agent to save what you want to download, such as a report or a chart, in /mnt/session/outputs. It
        appears here when the turn has ended.
      </EmptyState>
    );
  }
  return (
    <div className="flex min-h-0 flex-1">
      <div
        className={cn(
          "flex w-80 shrink-0 flex-col overflow-y-auto border-r max-md:w-full max-md:border-r-0",
          wanted !== undefined && "max-md:hidden",
        )}
      >
        <FileGroups
          outputs={outputs.data?.files ?? []}
          attachments={attachments.data?.files ?? []}
          omitted={omitted}
          missing={attachments.data?.missing ?? 0}
          selectedId={selected?.id ?? null}
          onSelect={select}
        />
      </div>
      <div className={cn("flex min-w-0 flex-1 flex-col", wanted === undefined && "max-md:hidden")}>
        {selected !== undefined && (
          <Preview
            key={selected.id}
            file={selected}
            onDelete={askDelete}
            onDownload={() => {
              save(selected);
            }}
            onBack={() => {
              select(undefined);
            }}
          />
        )}
        {selected === undefined && wanted !== undefined && (
          <EmptyState
            title="This file no longer exists"
            action={
              <Button
                onClick={() => {
                  select(undefined);
                }}
              >
                Show the files
              </Button>
            }
          >
            A later turn changed or removed it, or somebody deleted it.
          </EmptyState>
        )}
      </div>
      <Dialog
        open={deleting !== null}
        onOpenChange={(isOpen) => {
          if (!isOpen) {
            setDeleting(null);
          }
        }}
      >
        {deleting !== null && (
          <DialogContent
            title="Delete this output?"
            description={<SafeText className="font-mono text-sm break-all">{deleting.name}</SafeText>}
            footer={
              <>
                <Button
                  onClick={() => {
                    setDeleting(null);
                  }}
                >
                  Cancel
                </Button>
                <Button variant="danger" onClick={() => void remove(deleting)}>
                  Delete
                </Button>
              </>
            }
          >
            It is also removed from the agent’s directory. This cannot be undone.
          </DialogContent>
        )}
      </Dialog>
    </div>
  );
}
