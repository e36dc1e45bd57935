// Teams: lists of members that decide who sees a session.
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { displayShortcut } from "@/actions/shortcuts";
import { useActions } from "@/actions/use-actions";
import type { Principal } from "@/api/contract";
import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import { everyMemberQuery, type Team, teamsQuery } from "@/api/queries/people";
import { Badge } from "@/design/components/badge";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { MenuItem } from "@/design/components/menu";
import { SkeletonRows } from "@/design/components/skeleton";
import { Time } from "@/design/components/time";
import { showToast } from "@/design/components/toast";
import { SafeText } from "@/design/text/text";

import { findAccessProblem } from "../people/access";
import { EntryList, entriesOf, SectionBar } from "../shared/entry-list";
import { EntryMenu, EntryName } from "../shared/entry-menu";
import { useSection } from "../shared/use-section";
import { countMembers, memberNames } from "./model";
import { TeamDialog } from "./team-dialog";

const COLUMNS = ["Name", "Members", "", "Created", ""];
const GRID = "md:grid-cols-[minmax(0,3fr)_6rem_minmax(0,6fr)_6rem_2rem]";
const TEXT = "A team decides who sees a session. It has no roles and no keys.";

export default function TeamsSection() {
  const { data: me } = useQuery(meQuery);
  return me === undefined ? <SkeletonRows /> : <Teams me={me} />;
}

function Teams({ me }: { me: Principal }) {
  const queries = useQueryClient();
  const address = useSection("teams");
  const list = useInfiniteQuery(teamsQuery);
  const problem = findAccessProblem(me);
  const canChange = problem === null;
  const { data: members } = useQuery({ ...everyMemberQuery, enabled: canChange });
  /** Null: a new team. Undefined: the dialog is closed. */
  const [edited, setEdited] = useState<Team | null | undefined>(undefined);
  const selected = entriesOf(list).find((team) => team.id === address.search.selected);
  const ownIds = new Set(me.teams.map((team) => team.id));

  function create(): void {
    setEdited(null);
  }
  useActions({
    ...(canChange ? { "settings.new-team": create } : {}),
    ...(canChange && selected !== undefined
      ? {
          "settings.change-team": () => {
            setEdited(selected);
          },
        }
      : {}),
  });
  return (
    <>
      <SectionBar text={canChange ? TEXT : `${TEXT} ${problem}`}>
        {canChange && (
          <Button variant="primary" className="max-md:ml-auto max-md:h-11" onClick={create}>
            New team
          </Button>
        )}
      </SectionBar>
      <EntryList
        label="Teams"
        list={list}
        address={address}
        columns={COLUMNS}
        grid={GRID}
        empty={
          <EmptyState title="No teams yet" command='footplate teams create web --member "Ann Miller"'>
            Choose a team when you start a session, and only its members and administrators see it.
          </EmptyState>
        }
      >
        {(team) => (
          <>
            <EntryName
              marks={ownIds.has(team.id) && <Badge tone="accent">you are in it</Badge>}
              onSelect={() => {
                address.select(team.id);
              }}
            >
              <SafeText>{team.name}</SafeText>
            </EntryName>
            <span className="text-muted">{countMembers(team.member_ids.length)}</span>
            <SafeText className="min-w-0 truncate max-md:basis-full max-md:empty:hidden" limit={500}>
              {members === undefined ? "" : memberNames(team, members).join(", ")}
            </SafeText>
            <Time value={team.created_at} className="text-muted max-md:hidden" />
            {canChange && (
              <EntryMenu
                name={team.name}
                onOpen={() => {
                  address.select(team.id);
                }}
              >
                <MenuItem
                  shortcut={displayShortcut("e").join(" ")}
                  onClick={() => {
                    setEdited(team);
                  }}
                >
                  Add and remove members…
                </MenuItem>
              </EntryMenu>
            )}
          </>
        )}
      </EntryList>
      {edited !== undefined && (
        <TeamDialog
          team={edited}
          onSaved={(team) => {
            setEdited(undefined);
            void queries.invalidateQueries({ queryKey: keys.teams });
            void queries.invalidateQueries({ queryKey: keys.me });
            showToast({
              title: edited === null ? "Team created" : "Team changed",
              description: `${team.name}: ${countMembers(team.member_ids.length)}`,
            });
          }}
          onClose={() => {
            setEdited(undefined);
          }}
        />
      )}
    </>
  );
}
