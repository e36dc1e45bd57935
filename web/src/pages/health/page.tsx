// Health: whether work can run, and if not, what is wrong.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";

import { runAction } from "@/actions/registry";
import { useActions } from "@/actions/use-actions";
import {
  offeredBackendsQuery,
  queuesQuery,
  stuckSessionsQuery,
  versionsQuery,
  type Worker,
  workersQuery,
} from "@/api/queries/health";
import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import { Button } from "@/design/components/button";
import { copyText } from "@/design/components/copy";
import { Switch } from "@/design/components/switch";
import { showToast } from "@/design/components/toast";
import { SafeText } from "@/design/text/text";
import { usePageTitle } from "@/frame/page-title";
import { compact } from "@/frame/search";
import { useListKeys } from "@/frame/use-list-keys";

import { Headline } from "./headline";
import { QueueTable, sortQueues } from "./queues";
import { Reading, Section } from "./section";
import type { HealthSearch } from "./search";
import { groupStuckSessions } from "./stuck";
import { SHOWN, StuckGroups } from "./stuck-sessions";
import { findProblems, type HealthFacts, summarize } from "./verdict";
import { describeVersions, listVersions } from "./versions";
import { sortWorkers, WorkerTable } from "./workers";

const route = getRouteApi("/frame/health");

export default function HealthPage() {
  usePageTitle("Health");
  const search = route.useSearch();
  const navigate = useNavigate();
  const client = useQueryClient();
  const { data: me } = useQuery(meQuery);
  const canManage = me?.permissions.includes("manage_members") ?? false;
  const stuck = useQuery(stuckSessionsQuery);
  const backends = useQuery(offeredBackendsQuery);
  const versions = useQuery(versionsQuery);
  const workers = useQuery({ ...workersQuery, enabled: canManage });
  const queues = useQuery({ ...queuesQuery, enabled: canManage });

  const groups = groupStuckSessions(stuck.data?.sessions ?? [], backends.data ?? []);
  const facts: HealthFacts = {
    groups: stuck.data === undefined ? undefined : groups,
    stuckTotal: stuck.data?.total ?? 0,
    workers: workers.data,
    hasWorker: backends.data?.some((backend) => backend.workers > 0),
    queues: queues.data,
    respondsTemporal: versions.data === undefined ? undefined : versions.data.temporal !== null,
  };
  const problems = findProblems(facts);
  const needed = [stuck, backends, versions, ...(canManage ? [workers] : [])];
  const isUnknown = needed.some((query) => query.error !== null && query.data === undefined);
  const summary = canManage && workers.data === undefined && problems.length === 0 ? null : summarize(facts, problems);
  const sessions = groups.flatMap((group) => group.sessions.slice(0, SHOWN));
  const selected = sessions.find((session) => session.id === search.selected);

  function go(change: { [K in keyof HealthSearch]?: HealthSearch[K] | undefined }): void {
    void navigate({ to: "/health", search: compact({ ...search, ...change }), replace: true });
  }
  useListKeys({
    next: "health.next",
    previous: "health.previous",
    count: sessions.length,
    selected: selected === undefined ? -1 : sessions.indexOf(selected),
    onSelect: (index) => {
      go({ selected: sessions[index]?.id });
    },
  });
  useActions({
    "health.refresh": () => {
      void client.invalidateQueries({ queryKey: keys.health }).then(() => {
        showToast({ title: "Checked again" });
      });
    },
    "health.list": () => void navigate({ to: "/sessions", search: { stuck: true } }),
    ...(selected === undefined
      ? {}
      : { "health.open": () => void navigate({ to: "/sessions/$sessionId", params: { sessionId: selected.id } }) }),
    ...(canManage
      ? {
          "health.lost": () => {
            go({ lost: search.lost === true ? undefined : true });
          },
        }
      : {}),
    ...(versions.data === undefined
      ? {}
      : {
          "health.copy-versions": () => {
            void copyText(describeVersions(versions.data)).then((isCopied) => {
              if (isCopied) {
                showToast({ title: "Versions copied" });
              }
            });
          },
        }),
  });

  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <Headline summary={summary} problems={problems} isUnknown={isUnknown} />
      <Section title="Sessions that do not move">
        <Reading query={stuck} name="The sessions">
          {({ total }) => <StuckGroups groups={groups} total={total} selected={search.selected} />}
        </Reading>
      </Section>
      {canManage ? (
        <>
          <Section
            title="Workers"
            aside={
              <LostSwitch
                workers={workers.data ?? []}
                isOn={search.lost === true}
                onChange={(isOn) => {
                  go({ lost: isOn ? true : undefined });
                }}
              />
            }
          >
            <Reading query={workers} name="The workers">
              {(all) => <Workers workers={all} showsLost={search.lost === true} version={versions.data?.footplate} />}
            </Reading>
          </Section>
          <Section title="Queues">
            <Reading query={queues} name="The queues">
              {(all) => <QueueTable queues={sortQueues(all)} />}
            </Reading>
          </Section>
        </>
      ) : (
        <Section title="Workers and queues">
          <p className="px-4 text-muted">
            Workers and queues belong to all organisations of this server, so only members who can manage members see
            them. Ask an administrator if sessions wait for a worker.
          </p>
        </Section>
      )}
      <Section
        title="Versions"
        aside={
          versions.data !== undefined && (
            <Button variant="quiet" size="sm" className="max-md:h-11" onClick={() => runAction("health.copy-versions")}>
              Copy
            </Button>
          )
        }
      >
        <Reading query={versions} name="The versions">
          {(known) => (
            <dl className="flex flex-wrap gap-x-8 gap-y-2 px-4">
              {listVersions(known).map(({ name, value }) => (
                <div key={name}>
                  <dt className="text-sm text-muted">{name}</dt>
                  <dd>
                    <SafeText>{value}</SafeText>
                  </dd>
                </div>
              ))}
            </dl>
          )}
        </Reading>
      </Section>
    </div>
  );
}

interface LostSwitchProps {
  workers: readonly Worker[];
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

function LostSwitch({ workers, isOn, onChange }: LostSwitchProps) {
  const lost = workers.filter((worker) => worker.state === "lost").length;
  return (
    <Switch checked={isOn} onCheckedChange={onChange}>
      {lost === 0 ? "Show those lost in the last day" : `Show ${lost} lost in the last day`}
    </Switch>
  );
}

function Workers(props: { workers: readonly Worker[]; showsLost: boolean; version: string | undefined }) {
  const shown = sortWorkers(props.workers).filter((worker) => props.showsLost || worker.state === "running");
  return shown.length === 0 ? (
    <p className="px-4 text-muted">
      No worker is running. Start one:{" "}
      <code className="rounded-sm bg-code px-1 font-mono text-sm">footplate worker</code>
    </p>
  ) : (
    <WorkerTable workers={shown} version={props.version} />
  );
}
