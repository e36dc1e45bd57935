// A member in the list.
import { Bot, UserRound, UserX } from "lucide-react";

import { displayShortcut } from "@/actions/shortcuts";
import type { Member } from "@/api/queries/people";
import { Badge } from "@/design/components/badge";
import { Mark } from "@/design/components/mark";
import { MenuItem } from "@/design/components/menu";
import { SafeText } from "@/design/text/text";

import { EntryMenu, EntryName } from "../shared/entry-menu";
import { describeSignIn } from "./describe";

export interface MemberCommands {
  changeRoles: (member: Member) => void;
  /** Also hands over the work of a member that is disabled already. */
  disable: (member: Member) => void;
  enable: (member: Member) => void;
}

interface Props {
  member: Member;
  isOwn: boolean;
  teams: readonly string[];
  /** The name of the member who continues its work. */
  successor: string | null;
  commands: MemberCommands;
  onSelect: (id: string) => void;
}

export function MemberCells({ member, isOwn, teams, successor, commands, onSelect }: Props) {
  const isDisabled = member.disabled_at !== null;
  function select(): void {
    onSelect(member.id);
  }
  return (
    <>
      {isDisabled ? (
        <Mark icon={UserX} text="disabled" />
      ) : (
        <Mark icon={member.kind === "service" ? Bot : UserRound} text="active" className="text-text" />
      )}
      <span className="min-w-0 max-md:order-first max-md:basis-full">
        <EntryName
          onSelect={select}
          marks={
            <>
              {isOwn && <Badge tone="accent">you</Badge>}
              {member.kind === "service" && <Badge>service account</Badge>}
            </>
          }
        >
          <SafeText>{member.name}</SafeText>
        </EntryName>
        {(member.email !== null || successor !== null) && (
          <SafeText className="block truncate text-sm text-muted" limit={300}>
            {successor === null ? (member.email ?? "") : `work handed over to ${successor}`}
          </SafeText>
        )}
      </span>
      <span className="min-w-0 truncate">{member.roles.join(", ")}</span>
      <SafeText className="min-w-0 truncate text-muted max-md:empty:hidden" limit={300}>
        {teams.join(", ")}
      </SafeText>
      <span className="min-w-0 truncate text-muted">
        <span className="md:hidden">Signs in with: </span>
        {isDisabled ? "–" : describeSignIn(member)}
      </span>
      <EntryMenu name={member.name} onOpen={select}>
        {isDisabled ? (
          <>
            <MenuItem
              shortcut={displayShortcut("h").join(" ")}
              onClick={() => {
                commands.disable(member);
              }}
            >
              Hand over the work…
            </MenuItem>
            <MenuItem
              shortcut={displayShortcut("shift+d").join(" ")}
              onClick={() => {
                commands.enable(member);
              }}
            >
              Enable…
            </MenuItem>
          </>
        ) : (
          <>
            <MenuItem
              shortcut={displayShortcut("e").join(" ")}
              onClick={() => {
                commands.changeRoles(member);
              }}
            >
              Change roles…
            </MenuItem>
            <MenuItem
              isDangerous
              shortcut={displayShortcut("shift+d").join(" ")}
              onClick={() => {
                commands.disable(member);
              }}
            >
              Disable…
            </MenuItem>
          </>
        )}
      </EntryMenu>
    </>
  );
}
