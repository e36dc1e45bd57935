// All projects, each with its location, branch, trust and setup.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Archive } from "lucide-react";

import { useActions } from "@/actions/use-actions";
import { type Project, projectListQuery } from "@/api/queries/projects";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { Mark } from "@/design/components/mark";
import { SafeText } from "@/design/text/text";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { EntryLink, EntryList, entriesOf } from "../shared/entry-list";
import { NEW, type SectionAddress } from "../shared/use-section";
import { ListBar } from "../work/list-bar";
import { hasRules, locationOf, TRUST } from "./model";
import { useProjectCommands, useProjectRights } from "./use-project-commands";

const COLUMNS = ["Project", "Location", "Branch", "Trust", "Setup"];
const GRID = "md:grid-cols-[minmax(0,2fr)_minmax(0,4fr)_minmax(0,1.5fr)_104px_minmax(0,2.5fr)]";

export function ProjectList({ address }: { address: SectionAddress }) {
  const { search, open } = address;
  const rights = useProjectRights();
  const canChange = rights?.canChange ?? false;
  const list = useInfiniteQuery(projectListQuery(search.all === true));
  const selected = entriesOf(list).find((one) => one.id === search.selected);
  const commands = useProjectCommands();
  const canArchive = selected !== undefined && (rights?.canChangeRules === true || !hasRules(selected));
  useActions(
    canChange && selected?.archived_at === null
      ? {
          "settings.project-edit": () => {
            open({ item: selected.id, edit: true });
          },
          ...(canArchive
            ? {
                "settings.project-archive": () => {
                  commands.archive(selected);
                },
              }
            : {}),
        }
      : {},
  );
  return (
    <>
      <ListBar
        address={address}
        list={list}
        creation={canChange ? { action: "settings.project-new", label: "New project" } : undefined}
        note={
          rights === null || canChange
            ? undefined
            : "You can only look: changes need the role operator, member or policy_admin."
        }
        hasArchive
      />
      <EntryList
        label="Projects"
        hasPages
        list={list}
        address={address}
        columns={COLUMNS}
        grid={GRID}
        empty={
          <EmptyState
            title="A project is a git repository that sessions work on"
            command='footplate run --project . "Make the tests pass"'
            {...(canChange
              ? {
                  action: (
                    <Button
                      variant="primary"
                      className="max-md:h-11"
                      onClick={() => {
                        open({ item: NEW });
                      }}
                    >
                      Create a project
                    </Button>
                  ),
                }
              : {})}
          >
            Each session works on a copy of its own. The command makes a project of your directory.
          </EmptyState>
        }
      >
        {(project) => (
          <>
            <EntryLink address={address} id={project.id} name={project.name} />
            <Cells project={project} />
          </>
        )}
      </EntryList>
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </>
  );
}

function Cells({ project }: { project: Project }) {
  const trust = TRUST[project.trust];
  return (
    <>
      <span className="truncate max-md:basis-full" title={locationOf(project)}>
        <SafeText limit={300}>{locationOf(project)}</SafeText>
      </span>
      <span className="truncate text-muted">
        {project.branch === null ? "checked out" : <SafeText limit={300}>{project.branch}</SafeText>}
      </span>
      <span className={project.trust === "nothing" ? "text-muted" : undefined} title={trust.text}>
        {trust.title}
      </span>
      {project.archived_at === null ? (
        <code className="truncate font-mono text-sm text-muted">
          {project.setup === null ? "–" : <SafeText limit={300}>{project.setup}</SafeText>}
        </code>
      ) : (
        <Mark icon={Archive} text="archived" />
      )}
    </>
  );
}
