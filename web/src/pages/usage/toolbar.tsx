// Above the report: its period, its groups, and what can be done with it.
import { Download } from "lucide-react";

import { runAction } from "@/actions/registry";
import type { UsageGrouping } from "@/api/queries/usage";
import { Button } from "@/design/components/button";
import { Menu, MenuContent, MenuItem, MenuTrigger } from "@/design/components/menu";
import { Select } from "@/design/components/select";
import { Tab, TabList, Tabs } from "@/design/components/tabs";

import { GROUPINGS } from "./figures";
import { describePeriod, type Period, type Preset, PRESETS } from "./period";

const PRESET_TITLES: Record<Preset, string> = {
  "7d": "7 days",
  "30d": "30 days",
  "90d": "90 days",
  month: "This month",
};
export const GROUPING_TITLES: Record<UsageGrouping, string> = {
  day: "Day",
  model: "Model",
  agent: "Agent",
  project: "Project",
  member: "Member",
};
const GROUPING_OPTIONS = GROUPINGS.map((value) => ({ value, label: `By ${value}` }));

interface Props {
  /** Null: the person chose the days. */
  preset: Preset | null;
  period: Period;
  grouping: UsageGrouping;
  onPreset: (preset: Preset) => void;
  onOwnPeriod: () => void;
  onGrouping: (grouping: UsageGrouping) => void;
}

export function Toolbar({ preset, period, grouping, onPreset, onOwnPeriod, onGrouping }: Props) {
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-x-4 border-b pr-4 max-md:pr-0">
      <Tabs
        className="min-w-0 max-md:w-full"
        value={preset ?? "own"}
        onValueChange={(next: Preset | "own") => {
          if (next === "own") {
            onOwnPeriod();
          } else {
            onPreset(next);
          }
        }}
      >
        <TabList label="Period" className="border-b-0 max-md:border-b">
          {PRESETS.map((each) => (
            <Tab key={each} value={each}>
              {PRESET_TITLES[each]}
            </Tab>
          ))}
          {preset === null && <Tab value="own">{describePeriod(period)}</Tab>}
        </TabList>
      </Tabs>
      <div className="ml-auto flex items-center gap-2 py-1 max-md:w-full max-md:px-4">
        <Button variant="quiet" className="max-md:h-11" title="Choose the days (5)" onClick={onOwnPeriod}>
          Choose days
        </Button>
        <Select
          label="Group by"
          className="w-32 max-md:ml-auto"
          options={GROUPING_OPTIONS}
          value={grouping}
          onChange={(next) => {
            if (next !== null) {
              onGrouping(next);
            }
          }}
        />
        <Menu>
          <MenuTrigger
            render={
              <Button variant="quiet" size="icon" className="max-md:size-11" aria-label="Download" title="Download" />
            }
          >
            <Download />
          </MenuTrigger>
          <MenuContent align="end">
            <MenuItem shortcut="D" onClick={() => runAction("usage.download-csv")}>
              Download as CSV
            </MenuItem>
            <MenuItem onClick={() => runAction("usage.download-json")}>Download as JSON</MenuItem>
            <MenuItem shortcut="C" onClick={() => runAction("usage.copy-command")}>
              Copy the command
            </MenuItem>
          </MenuContent>
        </Menu>
      </div>
    </div>
  );
}
