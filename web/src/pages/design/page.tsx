// Design: the colours, type, states and components that every page is made of.
import type { ReactNode } from "react";
import { useState } from "react";

import { ApiError } from "@/api/errors";
import { SESSION_STATES } from "@/api/session-state";
import { Badge } from "@/design/components/badge";
import { Button } from "@/design/components/button";
import { Checkbox } from "@/design/components/checkbox";
import { CopyButton } from "@/design/components/copy";
import { Dialog, DialogClose, DialogContent, DialogTrigger } from "@/design/components/dialog";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Kbd } from "@/design/components/kbd";
import { Menu, MenuContent, MenuItem, MenuSeparator, MenuTrigger } from "@/design/components/menu";
import { Popover, PopoverContent, PopoverTrigger } from "@/design/components/popover";
import { Row } from "@/design/components/row";
import { Select } from "@/design/components/select";
import { Sheet, SheetContent, SheetTrigger } from "@/design/components/sheet";
import { SkeletonRows } from "@/design/components/skeleton";
import { State } from "@/design/components/state";
import { Switch } from "@/design/components/switch";
import { Tab, TabList, TabPanel, Tabs } from "@/design/components/tabs";
import { Time } from "@/design/components/time";
import { showToast } from "@/design/components/toast";
import { Tooltip } from "@/design/components/tooltip";
import { formatDuration, formatMoney, formatTokens } from "@/design/format";
import { CodeBlock, SafeText } from "@/design/text/text";
import { usePageTitle } from "@/frame/page-title";

const COLORS = [
  "bg-canvas",
  "bg-surface",
  "bg-hover",
  "bg-selected",
  "bg-code",
  "bg-line",
  "bg-line-strong",
  "bg-accent",
  "bg-accent-soft",
  "bg-waiting",
  "bg-waiting-soft",
  "bg-failed",
  "bg-failed-soft",
  "bg-success",
  "bg-success-soft",
  "bg-added",
  "bg-removed",
] as const;
const SIZES = ["text-xs", "text-sm", "text-base", "text-lg", "text-xl"] as const;
const FRUITS = [
  { value: "website", label: "website" },
  { value: "billing", label: "billing" },
  { value: "mobile", label: "mobile" },
] as const;
const HIDDEN_TEXT = "rm -rf \u202efdp.\u202c/ # pay\u200bpal \u001b[31m";
const STARTED_AT = new Date(Date.now() - 200_000).toISOString();

export default function DesignPage() {
  usePageTitle("Design");
  const [project, setProject] = useState<string | null>(null);
  const [isOn, setOn] = useState(true);
  return (
    <div className="mx-auto flex w-full max-w-5xl flex-col gap-8 p-4">
      <Section title="Colours">
        <ul className="grid grid-cols-2 gap-2 md:grid-cols-4">
          {COLORS.map((color) => (
            <li key={color} className="flex items-center gap-2">
              <span className={`size-8 rounded-md border ${color}`} />
              <code className="font-mono text-sm">{color}</code>
            </li>
          ))}
        </ul>
      </Section>
      <Section title="Type and spacing">
        {SIZES.map((size) => (
          <p key={size} className={size}>
            {size}: Make the tests pass 0123456789
          </p>
        ))}
        <p className="mt-2 font-mono text-sm">font-mono: git push origin fix/median</p>
        <p className="mt-2 text-muted">text-muted: everything lies on a grid of 8 px (gap-1 is half a step).</p>
      </Section>
      <Section title="States">
        <div className="flex flex-wrap gap-4">
          {SESSION_STATES.map((state) => (
            <State key={state} state={state} />
          ))}
        </div>
        <div className="mt-4 flex flex-wrap gap-2">
          <Badge>neutral</Badge>
          <Badge tone="accent">accent</Badge>
          <Badge tone="waiting">waiting</Badge>
          <Badge tone="failed">failed</Badge>
          <Badge tone="success">success</Badge>
        </div>
      </Section>
      <Section title="Values">
        <dl className="grid grid-cols-2 gap-x-8 gap-y-1 md:grid-cols-4">
          <Value name="Time">
            <Time value={STARTED_AT} />
          </Value>
          <Value name="Duration">{formatDuration(4800)}</Value>
          <Value name="Tokens">{formatTokens(12_345)}</Value>
          <Value name="Money">{formatMoney(420_000)}</Value>
        </dl>
        <div className="mt-4 flex flex-col gap-2">
          <SafeText>{HIDDEN_TEXT}</SafeText>
          <CodeBlock label="Command">{HIDDEN_TEXT}</CodeBlock>
          <CopyButton text="sesn_01J9ZV8E" label="the session ID" showText className="self-start" />
        </div>
      </Section>
      <Section title="Rows">
        <div className="border-t">
          {SESSION_STATES.map((state, index) => (
            <Row key={state} isSelected={index === 1}>
              <State state={state} className="w-28" />
              <span className="min-w-0 flex-1 truncate">Make the tests pass</span>
              <span className="text-muted">website</span>
              <span>{formatMoney(420_000 * index)}</span>
            </Row>
          ))}
        </div>
      </Section>
      <Section title="Buttons">
        <div className="flex flex-wrap items-center gap-2">
          <Button variant="primary" shortcut="a">
            Allow
          </Button>
          <Button>Secondary</Button>
          <Button variant="quiet">Quiet</Button>
          <Button variant="danger">Deny</Button>
          <Button disabled>Disabled</Button>
          <Button size="sm">Small</Button>
          <Tooltip content="A hint" shortcut="?">
            <Button>With a hint</Button>
          </Tooltip>
          <Kbd>⌘K</Kbd>
        </div>
      </Section>
      <Section title="Fields">
        <div className="grid gap-4 md:grid-cols-2">
          <Field label="Title" hint="At most 2000 characters.">
            {(control) => <Input {...control} placeholder="Make the tests pass" />}
          </Field>
          <Field label="Branch" error="The project has no branch with this name.">
            {(control) => <Input {...control} defaultValue="mian" />}
          </Field>
          <Field label="Task">{(control) => <Textarea {...control} />}</Field>
          <div className="flex flex-col items-start gap-3">
            <Select label="Project" options={FRUITS} value={project} onChange={setProject} clearLabel="All projects" />
            <Checkbox defaultChecked>Include archived</Checkbox>
            <Switch checked={isOn} onCheckedChange={setOn}>
              Notify me
            </Switch>
          </div>
        </div>
      </Section>
      <Section title="Above the page">
        <div className="flex flex-wrap gap-2">
          <Dialog>
            <DialogTrigger render={<Button />}>Dialog</DialogTrigger>
            <DialogContent
              title="Stop the session?"
              description="The running command is ended. You can continue later."
              footer={
                <>
                  <DialogClose render={<Button />}>Keep it running</DialogClose>
                  <DialogClose render={<Button variant="danger" />}>Stop</DialogClose>
                </>
              }
            />
          </Dialog>
          <Sheet>
            <SheetTrigger render={<Button />}>Sheet</SheetTrigger>
            <SheetContent title="Details">
              <p className="p-4">Details beside the list.</p>
            </SheetContent>
          </Sheet>
          <Popover>
            <PopoverTrigger render={<Button />}>Popover</PopoverTrigger>
            <PopoverContent title="Filter">
              <p className="px-2 pb-1">Any content.</p>
            </PopoverContent>
          </Popover>
          <Menu>
            <MenuTrigger render={<Button />}>Menu</MenuTrigger>
            <MenuContent>
              <MenuItem shortcut="f">Fork here</MenuItem>
              <MenuItem>Export</MenuItem>
              <MenuSeparator />
              <MenuItem isDangerous>Archive</MenuItem>
            </MenuContent>
          </Menu>
          <Button
            onClick={() => {
              showToast({
                title: "Allowed",
                description: "git push origin main",
                action: { label: "Undo", onClick: () => undefined },
              });
            }}
          >
            Toast
          </Button>
        </div>
      </Section>
      <Section title="Tabs">
        <Tabs defaultValue="one">
          <TabList label="Example">
            <Tab value="one">Conversation</Tab>
            <Tab value="two" count={3}>
              Changes
            </Tab>
          </TabList>
          <TabPanel value="one" className="p-2">
            Panel one
          </TabPanel>
          <TabPanel value="two" className="p-2">
            Panel two
          </TabPanel>
        </Tabs>
      </Section>
      <Section title="Nothing yet, loading, failed">
        <EmptyState
          title="No sessions yet"
          command='footplate run "Make the tests pass"'
          action={<Button>New session</Button>}
        >
          A session is an agent that works on a task.
        </EmptyState>
        <SkeletonRows count={3} />
        <ErrorPanel
          className="mt-4"
          error={
            new ApiError(
              409,
              {
                type: "error",
                error: {
                  type: "conflict_error",
                  title: "Conflict",
                  message: "The session has ended.",
                  help: "Fork it to continue.",
                  docs: "",
                },
                request_id: "req_01J9ZV8E",
              },
              null,
            )
          }
          onRetry={() => undefined}
        />
      </Section>
    </div>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h2 className="mb-3 text-lg font-semibold">{title}</h2>
      {children}
    </section>
  );
}

function Value({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt className="text-sm text-muted">{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
