// A schedule: its times, what its sessions do, and the history of its runs.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { ArrowLeft, Ellipsis } from "lucide-react";
import type { ReactNode } from "react";

import { displayShortcut } from "@/actions/shortcuts";
import { useActions } from "@/actions/use-actions";
import { ApiError } from "@/api/errors";
import { meQuery } from "@/api/queries/me";
import { agentsQuery, environmentsQuery, projectsQuery } from "@/api/queries/new-session";
import { type Schedule, scheduleQuery } from "@/api/queries/schedules";
import { Button, buttonStyle } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Facts, Section } from "@/design/components/facts";
import { Menu, MenuContent, MenuItem, MenuTrigger } from "@/design/components/menu";
import { SkeletonRows } from "@/design/components/skeleton";
import { Time } from "@/design/components/time";
import { CodeBlock, SafeText } from "@/design/text/text";
import { usePageTitle } from "@/frame/page-title";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";
import { KINDS } from "@/pages/session/steps/marks";
import { contentText, type Step, stepText } from "@/pages/session/steps/model";

import { describePause, describeTimes, formatInZone, formatSeconds, OVERLAP } from "./describe";
import { ScheduleState } from "./marks";
import { RunHistory } from "./run-history";
import { useScheduleCommands } from "./use-commands";

const route = getRouteApi("/frame/schedules/$scheduleId");

export default function SchedulePage(): ReactNode {
  const { scheduleId } = route.useParams();
  const { data: schedule, error, refetch } = useQuery(scheduleQuery(scheduleId));
  usePageTitle(schedule?.name ?? "Schedule");
  if (schedule !== undefined) {
    return <Content schedule={schedule} />;
  }
  if (error instanceof ApiError && error.status === 404) {
    return (
      <EmptyState
        title="There is no such schedule"
        action={
          <Link to="/schedules" className={buttonStyle({ variant: "secondary" })}>
            Show all schedules
          </Link>
        }
      >
        The link may be incomplete, or the schedule is hidden from you.
      </EmptyState>
    );
  }
  return error === null ? (
    <SkeletonRows />
  ) : (
    <ErrorPanel className="m-4" title="The schedule could not be loaded" error={error} onRetry={() => void refetch()} />
  );
}

function Content({ schedule }: { schedule: Schedule }) {
  const navigate = useNavigate();
  const { data: me } = useQuery(meQuery);
  const commands = useScheduleCommands();
  const isOver = schedule.archived_at !== null;
  const canChange = !isOver && me?.permissions.includes("operate") === true;
  const pause = isOver ? null : describePause(schedule);
  const isPaused = schedule.status === "paused";
  useActions(
    canChange
      ? {
          "schedules.edit": () =>
            void navigate({ to: "/schedules/$scheduleId/edit", params: { scheduleId: schedule.id } }),
          "schedules.run": () => {
            commands.run(schedule);
          },
          "schedules.pause": () => {
            commands.togglePause(schedule);
          },
          "schedules.archive": () => {
            commands.archive(schedule);
          },
        }
      : {},
  );
  return (
    <div className="mx-auto flex w-full max-w-5xl flex-col gap-6 p-6 max-md:p-4">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <Link
          to="/schedules"
          aria-label="All schedules"
          className={buttonStyle({ variant: "quiet", size: "icon", className: "-ml-2 max-md:size-11" })}
        >
          <ArrowLeft />
        </Link>
        <span className="flex-1">
          <ScheduleState schedule={schedule} />
        </span>
        {canChange && (
          <div className="flex gap-2 max-md:w-full">
            <Button
              variant="primary"
              className="max-md:h-11 max-md:flex-1"
              disabled={commands.isBusy}
              shortcut={displayShortcut("r").join(" ")}
              onClick={() => {
                commands.run(schedule);
              }}
            >
              Run now
            </Button>
            <Button
              className="max-md:h-11 max-md:flex-1"
              disabled={commands.isBusy}
              onClick={() => {
                commands.togglePause(schedule);
              }}
            >
              {isPaused ? "Resume" : "Pause"}
            </Button>
            <Link
              to="/schedules/$scheduleId/edit"
              params={{ scheduleId: schedule.id }}
              className={buttonStyle({ className: "max-md:h-11 max-md:flex-1" })}
            >
              Edit
            </Link>
            <Menu>
              <MenuTrigger render={<Button variant="quiet" size="icon" aria-label="More" className="max-md:size-11" />}>
                <Ellipsis />
              </MenuTrigger>
              <MenuContent align="end">
                <MenuItem
                  isDangerous
                  shortcut={displayShortcut("shift+d").join(" ")}
                  onClick={() => {
                    commands.archive(schedule);
                  }}
                >
                  Archive…
                </MenuItem>
              </MenuContent>
            </Menu>
          </div>
        )}
      </header>
      {pause !== null && (
        <p role="status" className="rounded-md bg-waiting-soft px-3 py-2 text-waiting">
          Paused: <SafeText>{pause}</SafeText>
          {schedule.paused_reason?.["type"] === "error" && " Fix the cause, then resume the schedule."}
        </p>
      )}
      {schedule.description !== null && (
        <p className="whitespace-pre-wrap">
          <SafeText>{schedule.description}</SafeText>
        </p>
      )}
      <div className="grid grid-cols-2 gap-6 max-md:grid-cols-1">
        <Times schedule={schedule} isOff={isOver || isPaused} />
        <Sessions schedule={schedule} />
      </div>
      <Work schedule={schedule} />
      <RunHistory schedule={schedule} />
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </div>
  );
}

function Times({ schedule, isOff }: { schedule: Schedule; isOff: boolean }) {
  const { schedule: cron } = schedule;
  const overlap = OVERLAP[schedule.overlap_policy];
  if (cron === null) {
    return (
      <Section title="Times">
        <p>It has no times. It runs only on request.</p>
      </Section>
    );
  }
  return (
    <Section title="Times">
      <Facts
        facts={[
          ["When", describeTimes(schedule)],
          ["Expression", <code className="font-mono text-sm">{cron.expression}</code>],
          ["Time zone", cron.timezone],
          [
            "Next runs",
            isOff || cron.upcoming_runs_at.length === 0 ? (
              <span className="text-muted">none</span>
            ) : (
              <ol>
                {cron.upcoming_runs_at.map((time, index) => (
                  <li key={time}>
                    {formatInZone(time, cron.timezone)}
                    {index === 0 && (
                      <span className="text-muted">
                        {" "}
                        · <Time value={time} />
                      </span>
                    )}
                  </li>
                ))}
              </ol>
            ),
          ],
          ["If one still works", <span title={overlap.text}>{overlap.title}</span>],
          ["Missed times", `Start up to ${formatSeconds(schedule.catch_up_seconds)} late`],
        ]}
      />
    </Section>
  );
}

function Sessions({ schedule }: { schedule: Schedule }) {
  const agents = useQuery(agentsQuery);
  const environments = useQuery(environmentsQuery);
  const projects = useQuery(projectsQuery);
  const { data: me } = useQuery(meQuery);
  const nameOf = (list: readonly { id: string; name: string }[] | undefined, id: string): string =>
    list?.find((one) => one.id === id)?.name ?? id;
  return (
    <Section title="Sessions">
      <Facts
        facts={[
          [
            "Agent",
            <>
              <SafeText>{nameOf(agents.data?.data, schedule.agent.id)}</SafeText>
              <span className="text-muted"> · version {schedule.agent.version}</span>
            </>,
          ],
          ["Environment", <SafeText>{nameOf(environments.data?.data, schedule.environment_id)}</SafeText>],
          [
            "Project",
            schedule.project_ids.length === 0 ? (
              <span className="text-muted">none</span>
            ) : (
              <SafeText>{schedule.project_ids.map((id) => nameOf(projects.data?.data, id)).join(", ")}</SafeText>
            ),
          ],
          ["When done", schedule.ends_when_done ? "The session ends" : "The session stays open"],
          [
            "In the name of",
            schedule.runs_as === me?.id ? "you" : <code className="font-mono text-sm">{schedule.runs_as}</code>,
          ],
        ]}
      />
    </Section>
  );
}

function Work({ schedule }: { schedule: Schedule }) {
  const messages = schedule.initial_events.map((event) => contentText(event["content"]));
  return (
    <Section title="Work">
      <ol className="flex flex-col gap-2">
        {messages.map((text, index) => (
          <li key={`message-${index}`}>
            <p className="text-sm text-muted">Message</p>
            <CodeBlock label="Message" className="max-h-60 whitespace-pre-wrap">
              {text}
            </CodeBlock>
          </li>
        ))}
        {schedule.steps.map((step, index) => {
          const one = step as unknown as Step;
          return (
            <li key={`step-${index}`}>
              <p className="text-sm text-muted">
                {KINDS[one.kind].title}
                {one.name !== null && <SafeText>{` · ${one.name}`}</SafeText>}
              </p>
              <CodeBlock label={KINDS[one.kind].title} className="max-h-60 whitespace-pre-wrap">
                {stepText(one)}
              </CodeBlock>
            </li>
          );
        })}
      </ol>
    </Section>
  );
}
