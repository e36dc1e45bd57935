// Templates for new sessions: use one, save the draft as one, delete one.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ChevronDown, Trash2 } from "lucide-react";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import { keys } from "@/api/keys";
import { archiveTemplate, createTemplate, type Template, templatesQuery } from "@/api/queries/new-session";
import type { SessionCreate } from "@/api/queries/sessions";
import { Button } from "@/design/components/button";
import { Dialog, DialogClose, DialogContent } from "@/design/components/dialog";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { Menu, MenuContent, MenuItem, MenuLabel, MenuSeparator, MenuTrigger } from "@/design/components/menu";
import { showToast } from "@/design/components/toast";
import { SafeText } from "@/design/text/text";

interface Props {
  isDisabled: boolean;
  suggestedName: string;
  build: () => SessionCreate;
  onUse: (template: Template) => void;
}

type Open = "menu" | "save" | "delete" | null;

export function TemplateMenu({ isDisabled, suggestedName, build, onUse }: Props) {
  const [open, setOpen] = useState<Open>(null);
  const { data, error, refetch } = useQuery(templatesQuery);
  const templates = data?.data ?? [];
  useActions(
    isDisabled
      ? {}
      : {
          "new.use-template": () => {
            setOpen("menu");
          },
          "new.save-template": () => {
            setOpen("save");
          },
          ...(templates.length === 0
            ? {}
            : {
                "new.delete-template": () => {
                  setOpen("delete");
                },
              }),
        },
  );
  function close(isOpen: boolean): void {
    if (!isOpen) {
      setOpen(null);
    }
  }
  return (
    <>
      <Menu
        open={open === "menu"}
        onOpenChange={(isOpen) => {
          setOpen(isOpen ? "menu" : null);
        }}
      >
        <MenuTrigger render={<Button variant="quiet" disabled={isDisabled} className="max-md:h-11" />}>
          Template
          <ChevronDown aria-hidden />
        </MenuTrigger>
        <MenuContent className="max-w-80">
          {templates.length === 0 && (
            <MenuLabel>{error === null ? "No templates yet" : "The templates could not be loaded"}</MenuLabel>
          )}
          {error !== null && <MenuItem onClick={() => void refetch()}>Try again</MenuItem>}
          {templates.map((template) => (
            <MenuItem
              key={template.id}
              onClick={() => {
                onUse(template);
              }}
            >
              <SafeText className="truncate">{template.name}</SafeText>
            </MenuItem>
          ))}
          <MenuSeparator />
          <MenuItem
            onClick={() => {
              setOpen("save");
            }}
          >
            Save as a template…
          </MenuItem>
          {templates.length > 0 && (
            <MenuItem
              onClick={() => {
                setOpen("delete");
              }}
            >
              Delete templates…
            </MenuItem>
          )}
        </MenuContent>
      </Menu>
      <Dialog open={open === "save"} onOpenChange={close}>
        <SaveContent
          suggestedName={suggestedName}
          build={build}
          onClose={() => {
            setOpen(null);
          }}
        />
      </Dialog>
      <Dialog open={open === "delete"} onOpenChange={close}>
        <DeleteContent templates={templates} />
      </Dialog>
    </>
  );
}

interface SaveProps extends Pick<Props, "suggestedName" | "build"> {
  onClose: () => void;
}

function SaveContent({ suggestedName, build, onClose }: SaveProps) {
  const queries = useQueryClient();
  const [name, setName] = useState(suggestedName);
  const save = useMutation({
    mutationFn: () => createTemplate(name.trim(), build()),
    onSuccess: (template) => {
      void queries.invalidateQueries({ queryKey: keys.templates });
      showToast({ title: "Template saved", description: template.name });
      onClose();
    },
  });
  return (
    <DialogContent
      title="Save as a template"
      description="Everyone in the organisation can use it. Attachments are not part of it."
      footer={
        <>
          <DialogClose render={<Button />}>Cancel</DialogClose>
          <Button
            variant="primary"
            disabled={name.trim() === "" || save.isPending}
            onClick={() => {
              save.mutate();
            }}
          >
            Save
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "") {
            save.mutate();
          }
        }}
      >
        <Field label="Name of the template">
          {(control) => <Input {...control} value={name} onValueChange={setName} />}
        </Field>
      </form>
      {save.error !== null && <ErrorPanel className="mt-3" title="The template was not saved" error={save.error} />}
    </DialogContent>
  );
}

function DeleteContent({ templates }: { templates: readonly Template[] }) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: archiveTemplate,
    onSettled: () => queries.invalidateQueries({ queryKey: keys.templates }),
  });
  return (
    <DialogContent
      title="Delete templates"
      description="For everyone. Sessions that were started with them stay."
      footer={<DialogClose render={<Button />}>Close</DialogClose>}
    >
      <ul className="flex flex-col">
        {templates.map((template) => (
          <li key={template.id} className="flex min-h-9 items-center gap-2 border-b last:border-b-0">
            <SafeText className="min-w-0 flex-1 truncate">{template.name}</SafeText>
            <Button
              variant="danger"
              size="sm"
              aria-label={`Delete ${template.name}`}
              disabled={remove.isPending}
              onClick={() => {
                remove.mutate(template.id);
              }}
            >
              <Trash2 aria-hidden />
              Delete
            </Button>
          </li>
        ))}
        {templates.length === 0 && <li className="py-2 text-muted">There are no templates.</li>}
      </ul>
      {remove.error !== null && (
        <ErrorPanel className="mt-3" title="The template was not deleted" error={remove.error} />
      )}
    </DialogContent>
  );
}
