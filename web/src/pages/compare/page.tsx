// Compare: two attempts side by side, to keep one of them.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { ArrowLeftRight, Search } from "lucide-react";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import { meQuery } from "@/api/queries/me";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { usePageTitle } from "@/frame/page-title";
import { compact } from "@/frame/search";
import { Chooser } from "./chooser";
import { Diffs } from "./diffs";
import { KeepDialog } from "./keep-dialog";
import { Metrics } from "./metrics";
import { type Attempt, useAttempt } from "./use-attempt";

const route = getRouteApi("/frame/compare");

export default function ComparePage() {
  usePageTitle("Compare");
  const { sessions = "", path } = route.useSearch();
  const navigate = route.useNavigate();
  const [first, second] = sessions.split(",").filter((id) => id !== "");
  function show(ids: readonly string[], file?: string): void {
    void navigate({
      search: compact({ sessions: ids.length === 0 ? undefined : ids.join(","), path: file }),
      replace: file !== undefined,
      resetScroll: false,
    });
  }
  if (first === undefined || second === undefined || first === second) {
    return (
      <Chooser
        sessionId={first}
        onChoose={(session) => {
          show(first === undefined ? [session.id] : [first, session.id]);
        }}
      />
    );
  }
  return (
    <Comparison
      key={`${first} ${second}`}
      ids={[first, second]}
      path={path}
      onPath={(file) => {
        show([first, second], file);
      }}
      onShow={show}
    />
  );
}

interface ComparisonProps {
  ids: readonly [string, string];
  path: string | undefined;
  onPath: (path: string) => void;
  onShow: (ids: readonly string[]) => void;
}

function Comparison({ ids, path, onPath, onShow }: ComparisonProps) {
  const { data: me } = useQuery(meQuery);
  const left = useAttempt(ids[0]);
  const right = useAttempt(ids[1]);
  const [kept, setKept] = useState<Attempt | null>(null);
  const [isChoosing, setChoosing] = useState(false);
  const canOperate = me?.permissions.includes("operate") ?? false;

  function cannotKeep({ session }: Attempt): string | null {
    if (!canOperate) {
      return "Your role does not permit merging and archiving.";
    }
    return session === undefined ? "The session is not loaded." : null;
  }
  function keep(attempt: Attempt): void {
    if (cannotKeep(attempt) === null) {
      setKept(attempt);
    }
  }
  const swap = (): void => {
    onShow([ids[1], ids[0]]);
  };
  useActions({
    "compare.keep-first": () => {
      keep(left);
    },
    "compare.keep-second": () => {
      keep(right);
    },
    "compare.swap": swap,
    "compare.choose": () => {
      setChoosing(!isChoosing);
    },
  });

  const failed = [left, right].find((attempt) => attempt.error !== null && attempt.session === undefined);
  if (failed !== undefined) {
    return (
      <div className="p-4">
        <ErrorPanel title="A session could not be loaded" error={failed.error} onRetry={failed.retry} />
      </div>
    );
  }
  if (left.session === undefined || right.session === undefined) {
    return <SkeletonRows />;
  }
  return (
    <div className="flex min-h-full flex-col">
      <div className="flex items-center gap-1 border-b px-4 py-1.5 max-md:px-2">
        <span className="text-sm text-muted max-md:hidden">
          Keep one to merge it and archive the other. J and K go to the next file of both.
        </span>
        <span className="ml-auto flex gap-1">
          <Button variant="quiet" shortcut="X" className="max-md:h-11" onClick={swap}>
            <ArrowLeftRight />
            Swap
          </Button>
          <Button
            variant="quiet"
            shortcut="O"
            className="max-md:h-11"
            aria-expanded={isChoosing}
            onClick={() => {
              setChoosing(!isChoosing);
            }}
          >
            <Search />
            Compare A with another
          </Button>
        </span>
      </div>
      {isChoosing && (
        <Chooser
          sessionId={ids[0]}
          exceptId={ids[1]}
          onChoose={(session) => {
            onShow([ids[0], session.id]);
          }}
        />
      )}
      <Metrics attempts={[left, right]} cannotKeep={cannotKeep} onKeep={keep} />
      {[left, right].map(
        (attempt) =>
          attempt.error !== null && (
            <ErrorPanel
              key={attempt.id}
              className="m-4"
              title="The changes could not be loaded"
              error={attempt.error}
              onRetry={attempt.retry}
            />
          ),
      )}
      <div className="flex h-[75vh] min-h-[32rem] flex-none flex-col">
        <Diffs attempts={[left, right]} path={path} onPath={onPath} />
      </div>
      {kept !== null && (
        <KeepDialog
          kept={kept}
          other={kept.id === left.id ? right : left}
          onClose={() => {
            setKept(null);
          }}
        />
      )}
    </div>
  );
}
