// A project: where its commits come from, and how each tree is prepared.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Archive, Ellipsis } from "lucide-react";

import { displayShortcut } from "@/actions/shortcuts";
import { useActions } from "@/actions/use-actions";
import { meQuery } from "@/api/queries/me";
import { type Project, projectQuery } from "@/api/queries/projects";
import { sessionCountsQuery } from "@/api/queries/sessions";
import { Button, buttonStyle } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { Facts, Section } from "@/design/components/facts";
import { Mark } from "@/design/components/mark";
import { Menu, MenuContent, MenuItem, MenuTrigger } from "@/design/components/menu";
import { Time } from "@/design/components/time";
import { CodeBlock, SafeText } from "@/design/text/text";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { EntryHeader, LoadedEntry } from "../work/loaded-entry";
import { RuleList } from "../work/rule-list";
import type { SectionAddress } from "../shared/use-section";
import { hasRules, locationOf, TRUST } from "./model";
import { useProjectCommands, useProjectRights } from "./use-project-commands";

interface Props {
  projectId: string;
  address: SectionAddress;
}

export function ProjectPage({ projectId, address }: Props) {
  const query = useQuery(projectQuery(projectId));
  return (
    <LoadedEntry query={query} noun="project" onClose={address.close}>
      {(project) => <Content project={project} address={address} />}
    </LoadedEntry>
  );
}

function Content({ project, address }: { project: Project; address: SectionAddress }) {
  const navigate = useNavigate();
  const rights = useProjectRights();
  const { data: me } = useQuery(meQuery);
  const commands = useProjectCommands();
  const isCurrent = project.archived_at === null;
  const canChange = isCurrent && rights?.canChange === true;
  const canArchive = canChange && (rights.canChangeRules || !hasRules(project));
  const canStart = isCurrent && me?.permissions.includes("operate") === true;
  function edit(): void {
    address.open({ item: project.id, edit: true });
  }
  function archive(): void {
    commands.archive(project);
  }
  useActions({
    ...(canChange ? { "settings.project-edit": edit } : {}),
    ...(canArchive ? { "settings.project-archive": archive } : {}),
    ...(canStart
      ? { "settings.project-session": () => void navigate({ to: "/new", search: { project_id: project.id } }) }
      : {}),
  });
  const caches = project.cached_directories;
  return (
    <div className="mx-auto flex w-full max-w-4xl flex-col gap-6 p-6 max-md:p-4">
      <EntryHeader
        title={project.name}
        backLabel="All projects"
        onBack={address.close}
        state={!isCurrent && <Mark icon={Archive} text="archived" />}
      >
        {canChange && (
          <>
            <Button className="max-md:h-11 max-md:flex-1" shortcut={displayShortcut("e").join(" ")} onClick={edit}>
              Edit
            </Button>
            {canStart && (
              <Link
                to="/new"
                search={{ project_id: project.id }}
                className={buttonStyle({ className: "max-md:h-11 max-md:flex-1" })}
              >
                Start a session
              </Link>
            )}
            <Menu>
              <MenuTrigger render={<Button variant="quiet" size="icon" aria-label="More" className="max-md:size-11" />}>
                <Ellipsis />
              </MenuTrigger>
              <MenuContent align="end">
                <MenuItem
                  isDangerous
                  disabled={!canArchive}
                  shortcut={displayShortcut("shift+d").join(" ")}
                  onClick={archive}
                >
                  {canArchive ? "Archive…" : "Archive (it has rules: ask a policy_admin)"}
                </MenuItem>
              </MenuContent>
            </Menu>
          </>
        )}
      </EntryHeader>
      <Section title="Project">
        <Facts
          facts={[
            [
              project.url === null ? "Path" : "Address",
              <span className="inline-flex max-w-full items-center gap-1">
                <SafeText className="min-w-0 [overflow-wrap:anywhere]">{locationOf(project)}</SafeText>
                <CopyButton text={locationOf(project)} label="the location" />
              </span>,
            ],
            [
              "Sessions start from",
              project.branch === null ? (
                "the branch that is checked out"
              ) : (
                <>
                  branch <SafeText>{project.branch}</SafeText>
                </>
              ),
            ],
            ["Trust", `${TRUST[project.trust].title}. ${TRUST[project.trust].text}`],
            ["Sessions", <Sessions projectId={project.id} />],
            ["Changed", <Time value={project.updated_at} />],
          ]}
        />
      </Section>
      <Section title="Setup command">
        {project.setup === null ? (
          <p className="text-muted">It has none. Sessions start with the files of git.</p>
        ) : (
          <>
            <CodeBlock label="Text of the setup command" className="whitespace-pre-wrap">
              {project.setup}
            </CodeBlock>
            <p className="text-sm text-muted">
              {caches === null
                ? "The usual ignored directories that it leaves are cached, such as node_modules and .venv."
                : caches.length === 0
                  ? "What it leaves is not cached."
                  : `Cached: ${caches.join(", ")}`}
            </p>
          </>
        )}
      </Section>
      <RuleList permissions={project.permissions} none="It has none of its own. Those of the organisation apply." />
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </div>
  );
}

function Sessions({ projectId }: { projectId: string }) {
  const { data } = useQuery(sessionCountsQuery({ project_id: projectId }));
  return (
    <Link to="/sessions" search={{ project_id: projectId }} className="text-accent hover:underline">
      {data === undefined ? "show them" : data.total.toLocaleString()}
    </Link>
  );
}
