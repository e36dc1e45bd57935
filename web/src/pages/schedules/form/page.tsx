// A new schedule, or the change of one.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import { agentsQuery, environmentsQuery, projectsQuery } from "@/api/queries/new-session";
import { type Schedule, scheduleQuery } from "@/api/queries/schedules";
import { buttonStyle } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { showToast } from "@/design/components/toast";
import { usePageTitle } from "@/frame/page-title";

import { ScheduleForm } from "./form";

export default function ScheduleFormPage(): ReactNode {
  const { scheduleId } = useParams({ strict: false });
  const isNew = scheduleId === undefined;
  usePageTitle(isNew ? "New schedule" : "Edit the schedule");
  const navigate = useNavigate();
  const queries = useQueryClient();
  const me = useQuery(meQuery);
  const agents = useQuery(agentsQuery);
  const environments = useQuery(environmentsQuery);
  const projects = useQuery(projectsQuery);
  // What others change meanwhile must not replace what is being typed.
  const schedule = useQuery({
    ...scheduleQuery(scheduleId ?? ""),
    enabled: !isNew,
    staleTime: "static",
    refetchOnMount: "always",
  });
  const needed = [me, agents, environments, projects, ...(isNew ? [] : [schedule])];
  const failed = needed.find((query) => query.error !== null && query.data === undefined);
  if (failed !== undefined) {
    return (
      <ErrorPanel
        className="m-4"
        title="The form could not be loaded"
        error={failed.error}
        onRetry={() => void failed.refetch()}
      />
    );
  }
  if (
    me.data === undefined ||
    agents.data === undefined ||
    environments.data === undefined ||
    projects.data === undefined ||
    (!isNew && (schedule.data === undefined || schedule.isFetching))
  ) {
    return <SkeletonRows count={5} />;
  }
  const problem = findProblem(me.data.permissions.includes("operate"), agents.data.data.length, schedule.data);
  if (problem !== null) {
    return problem;
  }
  function close(to: Schedule | undefined): void {
    void (to === undefined
      ? navigate({ to: "/schedules" })
      : navigate({ to: "/schedules/$scheduleId", params: { scheduleId: to.id } }));
  }
  return (
    <ScheduleForm
      key={scheduleId ?? "new"}
      schedule={schedule.data ?? null}
      choices={{ agents: agents.data.data, environments: environments.data.data, projects: projects.data.data }}
      onSaved={(saved) => {
        void queries.invalidateQueries({ queryKey: keys.deployments });
        showToast({ title: isNew ? "Schedule created" : "Schedule saved", description: saved.name });
        close(saved);
      }}
      onCancel={() => {
        close(schedule.data);
      }}
    />
  );
}

/** Why the form cannot be shown. */
function findProblem(canOperate: boolean, agents: number, schedule: Schedule | undefined): ReactNode {
  const back = (
    <Link to="/schedules" className={buttonStyle({ variant: "secondary" })}>
      Show all schedules
    </Link>
  );
  if (!canOperate) {
    return (
      <EmptyState title="You can only look at schedules" action={back}>
        Your role does not permit to change them. Ask an administrator for the role operator or member.
      </EmptyState>
    );
  }
  if (schedule !== undefined && schedule.archived_at !== null) {
    return (
      <EmptyState title="This schedule is archived" action={back}>
        It ended for good, so it cannot be changed. Create a new one.
      </EmptyState>
    );
  }
  return agents > 0 ? null : (
    <EmptyState
      title="First, an agent"
      action={
        <Link to="/new" className={buttonStyle({ variant: "primary" })}>
          Create an agent
        </Link>
      }
    >
      A schedule starts sessions of an agent, and there is none yet.
    </EmptyState>
  );
}
