// Members: people and service accounts, with their roles and teams and how they sign in.
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { useActions } from "@/actions/use-actions";
import type { Principal } from "@/api/contract";
import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import { allTeamsQuery, type Member, membersQuery, updateMember } from "@/api/queries/people";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { SkeletonRows } from "@/design/components/skeleton";
import { Switch } from "@/design/components/switch";
import { showToast } from "@/design/components/toast";
import { type Confirmation, ConfirmDialog } from "@/pages/session/confirm-dialog";

import { findAccessProblem } from "../people/access";
import { EntryList, entriesOf, SectionBar } from "../shared/entry-list";
import { useSection } from "../shared/use-section";
import { useChange } from "../people/use-change";
import { describeEnabling, teamsByMember } from "./describe";
import { DisableDialog } from "./disable-dialog";
import { AddMemberDialog, ChangeRolesDialog } from "./member-forms";
import { type MemberCommands, MemberCells } from "./member-cells";

const COLUMNS = ["State", "Name", "Roles", "Teams", "Signs in with", ""];
const GRID = "md:grid-cols-[5.5rem_minmax(0,4fr)_minmax(0,3fr)_minmax(0,3fr)_minmax(0,3fr)_2rem]";

export default function MembersSection() {
  const { data: me } = useQuery(meQuery);
  if (me === undefined) {
    return <SkeletonRows />;
  }
  const problem = findAccessProblem(me);
  return problem === null ? (
    <Members me={me} />
  ) : (
    <EmptyState title="You cannot see the members" command="footplate whoami">
      {problem} The command shows your own roles and teams.
    </EmptyState>
  );
}

type Opened = { dialog: "add" } | { dialog: "roles" | "disable"; member: Member };

function Members({ me }: { me: Principal }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const address = useSection("members");
  const list = useInfiniteQuery(membersQuery(address.search.all === true));
  const { data: teams } = useQuery(allTeamsQuery);
  const teamNames = useMemo(() => teamsByMember(teams ?? []), [teams]);
  const [opened, setOpened] = useState<Opened | null>(null);
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const change = useChange(keys.members, keys.apiKeys);
  const members = entriesOf(list);
  const selected = members.find((member) => member.id === address.search.selected);
  const nameOf = (id: string | null): string | null => members.find((member) => member.id === id)?.name ?? id;

  function close(): void {
    setOpened(null);
  }
  function refresh(): void {
    close();
    void queries.invalidateQueries({ queryKey: keys.members });
    void queries.invalidateQueries({ queryKey: keys.apiKeys });
  }
  function add(): void {
    setOpened({ dialog: "add" });
  }
  const commands: MemberCommands = {
    changeRoles: (member) => {
      setOpened({ dialog: "roles", member });
    },
    disable: (member) => {
      setOpened({ dialog: "disable", member });
    },
    enable: (member) => {
      setConfirmation({
        title: `Enable “${member.name}” again?`,
        text: describeEnabling(nameOf(member.successor_id)),
        button: "Enable",
        run: () =>
          change(
            () => updateMember(member.id, { disabled: false }),
            `“${member.name}” was not enabled`,
            () => showToast({ title: "Member enabled", description: member.name }),
          ),
      });
    },
  };
  const isDisabled = selected !== undefined && selected.disabled_at !== null;
  useActions({
    "settings.new-member": add,
    "settings.show-disabled-members": () => {
      address.toggleAll();
    },
    ...(selected === undefined
      ? {}
      : {
          "settings.disable-member": () => {
            (isDisabled ? commands.enable : commands.disable)(selected);
          },
          [isDisabled ? "settings.hand-over" : "settings.change-roles"]: () => {
            (isDisabled ? commands.disable : commands.changeRoles)(selected);
          },
        }),
  });
  return (
    <>
      <SectionBar text="A member is a person or a service account. Its roles say what it may do.">
        <Switch checked={address.search.all === true} onCheckedChange={address.toggleAll}>
          Show disabled
        </Switch>
        <Button variant="primary" className="max-md:ml-auto max-md:h-11" onClick={add}>
          Add member
        </Button>
      </SectionBar>
      <EntryList
        label="Members"
        list={list}
        address={address}
        columns={COLUMNS}
        grid={GRID}
        empty={
          <EmptyState title="No members" command='footplate members add "Ann Miller"'>
            A member is a person or a service account.
          </EmptyState>
        }
      >
        {(member) => (
          <MemberCells
            member={member}
            isOwn={member.id === me.id}
            teams={teamNames.get(member.id) ?? []}
            successor={nameOf(member.successor_id)}
            commands={commands}
            onSelect={address.select}
          />
        )}
      </EntryList>
      {opened?.dialog === "add" && (
        <AddMemberDialog
          onSaved={(member) => {
            refresh();
            showToast({
              title: "Member added",
              description: `“${member.name}” can sign in when it has an API key.`,
              action: {
                label: "API keys",
                onClick: () => void navigate({ to: "/settings", search: { section: "keys" } }),
              },
            });
          }}
          onClose={close}
        />
      )}
      {opened?.dialog === "roles" && (
        <ChangeRolesDialog
          member={opened.member}
          onSaved={(member) => {
            refresh();
            showToast({ title: "Roles changed", description: `${member.name}: ${member.roles.join(", ")}` });
          }}
          onClose={close}
        />
      )}
      {opened?.dialog === "disable" && (
        <DisableDialog
          member={opened.member}
          onSaved={(member) => {
            const title = opened.member.disabled_at === null ? "Member disabled" : "Work handed over";
            refresh();
            showToast({ title, description: member.name });
          }}
          onClose={close}
        />
      )}
      {confirmation !== null && (
        <ConfirmDialog
          confirmation={confirmation}
          onClose={() => {
            setConfirmation(null);
          }}
        />
      )}
    </>
  );
}
