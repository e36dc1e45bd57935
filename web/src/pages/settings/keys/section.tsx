// API keys: who may call the API, and as whom.
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Ban, Clock, KeyRound } from "lucide-react";
import { useState } from "react";

import { displayShortcut } from "@/actions/shortcuts";
import { useActions } from "@/actions/use-actions";
import type { Principal } from "@/api/contract";
import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import { projectsQuery } from "@/api/queries/new-session";
import { type ApiKey, apiKeysQuery, type NewApiKey } from "@/api/queries/people";
import { Badge } from "@/design/components/badge";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { Mark } from "@/design/components/mark";
import { MenuItem } from "@/design/components/menu";
import { SkeletonRows } from "@/design/components/skeleton";
import { Switch } from "@/design/components/switch";
import { Time, useNow } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { findAccessProblem } from "../people/access";
import { EntryList, entriesOf, SectionBar } from "../shared/entry-list";
import { EntryMenu, EntryName } from "../shared/entry-menu";
import { SecretDialog } from "../shared/secret-dialog";
import { useSection } from "../shared/use-section";
import { KeyFormDialog } from "./key-form";
import { type KeyState, keyState } from "./model";
import { type KeyCommands, useKeyCommands } from "./use-commands";

const COLUMNS = ["State", "Name", "Member", "Roles", "Projects", "Last used", "Expires", ""];
const GRID = "md:grid-cols-[5.5rem_minmax(0,3fr)_minmax(0,2.5fr)_minmax(0,2fr)_minmax(0,2fr)_6rem_6rem_2rem]";
const STATE_TICK_MS = 30_000;

export default function KeysSection() {
  const { data: me } = useQuery(meQuery);
  if (me === undefined) {
    return <SkeletonRows />;
  }
  const problem = findAccessProblem(me);
  return problem === null ? (
    <Keys me={me} />
  ) : (
    <EmptyState title="You cannot see API keys" command={`footplate login ${location.origin}`}>
      {problem} For a key of your own, run this command: it has your roles, and expires by itself.
    </EmptyState>
  );
}

interface Shown {
  created: NewApiKey;
  isReplaced: boolean;
}

function Keys({ me }: { me: Principal }) {
  const queries = useQueryClient();
  const address = useSection("keys");
  const list = useInfiniteQuery(apiKeysQuery(address.search.all === true));
  const [isCreating, setCreating] = useState(false);
  const [shown, setShown] = useState<Shown | null>(null);
  const commands = useKeyCommands(me, (created) => {
    setShown({ created, isReplaced: true });
  });
  const now = useNow(STATE_TICK_MS);
  const selected = entriesOf(list).find((key) => key.id === address.search.selected);
  const possible = selected === undefined ? NOTHING : possibleFor(selected, me, now);
  function create(): void {
    setCreating(true);
  }
  useActions({
    "settings.new-key": create,
    "settings.show-revoked-keys": () => {
      address.toggleAll();
    },
    ...(selected !== undefined && possible.revoke
      ? {
          "settings.revoke-key": () => {
            commands.revoke(selected);
          },
        }
      : {}),
    ...(selected !== undefined && possible.rotate
      ? {
          "settings.rotate-key": () => {
            commands.rotate(selected);
          },
        }
      : {}),
  });
  return (
    <>
      <SectionBar text="A key lets a program or a browser act as its member.">
        <Switch checked={address.search.all === true} onCheckedChange={address.toggleAll}>
          Show revoked
        </Switch>
        <Button variant="primary" className="max-md:ml-auto max-md:h-11" onClick={create}>
          New API key
        </Button>
      </SectionBar>
      <EntryList
        label="API keys"
        list={list}
        address={address}
        columns={COLUMNS}
        grid={GRID}
        empty={
          <EmptyState title="No API keys" command="footplate api-keys create --name laptop --expires-in 90">
            A key lets a program call the API as its member.
          </EmptyState>
        }
      >
        {(key) => <KeyCells entry={key} me={me} now={now} commands={commands} onSelect={address.select} />}
      </EntryList>
      {isCreating && (
        <KeyFormDialog
          me={me}
          onCreated={(created) => {
            setCreating(false);
            setShown({ created, isReplaced: false });
            void queries.invalidateQueries({ queryKey: keys.apiKeys });
            void queries.invalidateQueries({ queryKey: keys.members });
          }}
          onClose={() => {
            setCreating(false);
          }}
        />
      )}
      {shown !== null && (
        <SecretDialog
          title={shown.isReplaced ? `New secret of “${shown.created.name}”` : `API key “${shown.created.name}” created`}
          secret={shown.created.secret}
          warning="Copy the secret now. The server stores only its hash, so nothing can show it again after you close this."
          note={
            shown.isReplaced
              ? "The old secret stops working within 5 seconds."
              : "Programs send it as x-api-key. The command line reads it from FOOTPLATE_API_KEY."
          }
          onClose={() => {
            setShown(null);
          }}
        />
      )}
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </>
  );
}

const NOTHING = { revoke: false, rotate: false };

/** Replacing the secret of the key in use would sign out before the new one can be read. */
function possibleFor(key: ApiKey, me: Principal, now: number): typeof NOTHING {
  const state = keyState(key, now);
  return { revoke: state !== "revoked", rotate: state === "active" && key.id !== me.api_key_id };
}

function KeyStateMark({ state }: { state: KeyState }) {
  switch (state) {
    case "active":
      return <Mark icon={KeyRound} text="active" className="text-text" />;
    case "expired":
      return <Mark icon={Clock} text="expired" className="text-waiting" />;
    case "revoked":
      return <Mark icon={Ban} text="revoked" />;
  }
}

interface CellsProps {
  entry: ApiKey;
  me: Principal;
  now: number;
  commands: KeyCommands;
  onSelect: (id: string) => void;
}

function KeyCells({ entry: key, me, now, commands, onSelect }: CellsProps) {
  const state = keyState(key, now);
  const possible = possibleFor(key, me, now);
  function select(): void {
    onSelect(key.id);
  }
  return (
    <>
      <KeyStateMark state={state} />
      <EntryName
        onSelect={select}
        marks={
          key.id === me.api_key_id ? (
            <Badge tone="accent">in use here</Badge>
          ) : (
            key.member_id === me.id && <Badge>yours</Badge>
          )
        }
      >
        <SafeText>{key.name}</SafeText>
      </EntryName>
      <SafeText className="min-w-0 truncate text-muted max-md:max-w-40">
        {key.member_id === key.id ? "own service account" : key.member_name}
      </SafeText>
      <span className="min-w-0 truncate text-muted">{key.roles.join(", ")}</span>
      <Projects ids={key.project_ids} />
      <span className="text-muted">
        <span className="md:hidden">Used </span>
        {key.last_used_at === null ? "never" : <Time value={key.last_used_at} />}
      </span>
      <span className="text-muted">
        <span className="md:hidden">{state === "expired" ? "Expired " : "Expires "}</span>
        {key.expires_at === null ? "never" : <Time value={key.expires_at} />}
      </span>
      {possible.revoke ? (
        <EntryMenu name={key.name} onOpen={select}>
          {possible.rotate && (
            <MenuItem
              shortcut={displayShortcut("r").join(" ")}
              onClick={() => {
                commands.rotate(key);
              }}
            >
              Replace the secret…
            </MenuItem>
          )}
          <MenuItem
            isDangerous
            shortcut={displayShortcut("shift+d").join(" ")}
            onClick={() => {
              commands.revoke(key);
            }}
          >
            Revoke…
          </MenuItem>
        </EntryMenu>
      ) : (
        <span className="max-md:hidden" />
      )}
    </>
  );
}

function Projects({ ids }: { ids: readonly string[] | null }) {
  const { data } = useQuery(projectsQuery);
  if (ids === null) {
    return <span className="text-muted max-md:hidden">all</span>;
  }
  const names = ids.map((id) => data?.data.find((project) => project.id === id)?.name ?? id).join(", ");
  return (
    <SafeText className="min-w-0 truncate max-md:basis-full" limit={300}>
      {names}
    </SafeText>
  );
}
