// The steps that wait, in an order that can be changed by drag and by keyboard.
import {
  closestCenter,
  DndContext,
  type DragEndEvent,
  KeyboardSensor,
  PointerSensor,
  useSensor,
  useSensors,
} from "@dnd-kit/core";
import {
  SortableContext,
  sortableKeyboardCoordinates,
  useSortable,
  verticalListSortingStrategy,
} from "@dnd-kit/sortable";
import { CSS } from "@dnd-kit/utilities";
import type { ComponentProps, ReactNode } from "react";

import { showToast } from "@/design/components/toast";
import { cn } from "@/design/classes";
import { type Step, stepLabel } from "./model";

/** Enter is left to the page, which opens the selected step with it. */
const LIFT_KEYS = { start: ["Space"], cancel: ["Escape"], end: ["Space", "Enter"] };

interface Props {
  pending: readonly Step[];
  canMove: boolean;
  onMove: (step: Step, index: number) => void;
  renderRow: (step: Step, handle: ComponentProps<"button"> | undefined) => ReactNode;
}

export function Queue({ pending, canMove, onMove, renderRow }: Props) {
  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: 4 } }),
    useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates, keyboardCodes: LIFT_KEYS }),
  );
  function drop({ active, over }: DragEndEvent): void {
    const step = pending.find((one) => one.id === active.id);
    if (step === undefined) {
      const moved = active.data.current?.["label"] as unknown;
      showToast({
        title: `“${typeof moved === "string" ? moved : "The step"}” does not wait any more, so it was not moved`,
        tone: "failed",
      });
      return;
    }
    const index = pending.findIndex((one) => one.id === over?.id);
    if (index >= 0) {
      onMove(step, index);
    }
  }
  const label = (id: string | number): string => {
    const step = pending.find((one) => one.id === id);
    return step === undefined ? "the step" : stepLabel(step);
  };
  const place = (id: string | number): string =>
    `place ${pending.findIndex((one) => one.id === id) + 1} of ${pending.length}`;
  return (
    <DndContext
      sensors={sensors}
      collisionDetection={closestCenter}
      onDragEnd={drop}
      accessibility={{
        screenReaderInstructions: {
          draggable: "Press Space to lift the step, the arrow keys to move it, and Space to drop it.",
        },
        announcements: {
          onDragStart: ({ active }) => `Lifted ${label(active.id)}.`,
          onDragOver: ({ active, over }) =>
            over === null ? undefined : `${label(active.id)} is at ${place(over.id)}.`,
          onDragEnd: ({ active, over }) =>
            over === null ? undefined : `Dropped ${label(active.id)} at ${place(over.id)}.`,
          onDragCancel: ({ active }) => `${label(active.id)} is back at its place.`,
        },
      }}
    >
      <SortableContext items={pending.map((step) => step.id)} strategy={verticalListSortingStrategy}>
        <ol aria-label="Waiting steps">
          {pending.map((step) => (
            <SortableStep key={step.id} step={step} canMove={canMove} renderRow={renderRow} />
          ))}
        </ol>
      </SortableContext>
    </DndContext>
  );
}

function SortableStep({ step, canMove, renderRow }: { step: Step } & Pick<Props, "canMove" | "renderRow">) {
  const { setNodeRef, setActivatorNodeRef, attributes, listeners, transform, transition, isDragging } = useSortable({
    id: step.id,
    disabled: !canMove,
    data: { label: stepLabel(step) },
  });
  return (
    <li
      ref={setNodeRef}
      className={cn(
        "bg-canvas [contain-intrinsic-size:auto_37px] [content-visibility:auto]",
        isDragging && "relative z-10 shadow-popup",
      )}
      style={{ transform: CSS.Translate.toString(transform), transition }}
    >
      {renderRow(
        step,
        canMove
          ? {
              ref: setActivatorNodeRef,
              ...attributes,
              ...(listeners as ComponentProps<"button">),
            }
          : undefined,
      )}
    </li>
  );
}
