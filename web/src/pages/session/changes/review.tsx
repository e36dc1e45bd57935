// The diff with its list of files, the selected lines, and the comments.
import { type ReactNode, Suspense, useState } from "react";

import type { Session } from "@/api/session-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Sheet, SheetContent } from "@/design/components/sheet";
import { SkeletonRows } from "@/design/components/skeleton";
import { lazyPart } from "@/frame/lazy-part";
import { CommentBox } from "./comment-box";
import { CommentCard } from "./comment-card";
import { CommentTray } from "./comment-tray";
import type { Note } from "./diff-items";
import { FileHeader } from "./file-header";
import { FileList } from "./file-list";
import { MergeDialog } from "./merge-dialog";
import { LeftOut } from "./nothing";
import { describeLines } from "./ranges";
import { SelectionBar } from "./selection-bar";
import { Toolbar } from "./toolbar";
import type { Changes } from "./use-changes";
import type { ChangesNavigation } from "./use-navigation";
import { useReview } from "./use-review";

const DiffView = lazyPart("The diff", () => import("./diff-view"));

interface ReviewProps {
  session: Session;
  changes: Changes;
  navigation: ChangesNavigation;
  canOperate: boolean;
  /** Shown instead of the diff. */
  empty: ReactNode;
}

export function Review({ session, changes, navigation, canOperate, empty }: ReviewProps) {
  const review = useReview(session, changes, navigation, canOperate);
  const { comments, viewed, selection } = review;
  const [openList, setOpenList] = useState(false);

  const renderNote = (note: Note): ReactNode => (
    <div className="border-y bg-raised p-3 font-sans text-base whitespace-normal *:max-w-176">
      {note.kind === "comment" ? (
        <CommentCard
          key={note.comment.id}
          sessionId={session.id}
          comment={note.comment}
          comments={comments}
          turns={changes.turns}
          canOperate={canOperate}
          isMoved={note.isMoved}
        />
      ) : (
        <CommentBox
          key={`${note.file.id}:${describeLines(note.lines)}`}
          place={`${session.id}:${note.file.id}:${describeLines(note.lines)}`}
          label={`Comment on ${describeLines(note.lines)}`}
          saveLabel="Add comment"
          onSave={(text) => review.saveComment(note.file, note.lines, text, false)}
          onSend={(text) => review.saveComment(note.file, note.lines, text, true)}
          onClose={review.closeBox}
        />
      )}
    </div>
  );
  const list = (fieldId: string, rowHeight?: number) => (
    <FileList
      files={review.listed}
      activeId={review.activeId}
      fieldId={fieldId}
      {...(rowHeight === undefined ? {} : { rowHeight })}
      onOpen={(id) => {
        setOpenList(false);
        review.openFile(id);
      }}
    />
  );

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <Toolbar
        sessionId={session.id}
        changes={changes}
        layout={navigation.layout}
        viewedCount={review.viewedCount}
        onRange={navigation.showRange}
        onProject={navigation.showProject}
        onState={navigation.showState}
        onLayout={navigation.showLayout}
        onShowFiles={() => {
          setOpenList(true);
        }}
        onMerge={review.openMerge}
        onDownload={review.downloadPatch}
        onCompare={review.compare}
      />
      {changes.patch.error !== null && (
        <ErrorPanel
          className="m-4"
          title="The patch could not be loaded"
          error={changes.patch.error}
          onRetry={changes.patch.retry}
        />
      )}
      {empty ?? (
        <div className="flex min-h-0 flex-1">
          <aside className="flex w-72 shrink-0 flex-col border-r max-lg:hidden">{list(review.fieldId)}</aside>
          <div
            className="relative flex min-w-0 flex-1 flex-col"
            data-testid="diff"
            data-complete={changes.patch.isComplete}
          >
            {review.items.length === 0 ? (
              changes.patch.error === null && <SkeletonRows />
            ) : (
              <Suspense fallback={<SkeletonRows />}>
                <DiffView
                  key={review.viewKey}
                  items={review.items}
                  files={review.filesById}
                  layout={navigation.layout}
                  selection={selection}
                  onSelect={review.selectLines}
                  onComment={review.cannotCommentAtAll === null ? review.openBox : undefined}
                  onActive={review.setActive}
                  reveal={review.reveal}
                  renderHeader={(file) => (
                    <FileHeader
                      file={file}
                      isCollapsed={review.isCollapsed(file)}
                      commentCount={review.commentsOf(file).length}
                      onToggle={() => {
                        review.toggleFile(file);
                      }}
                      view={{
                        isViewed: viewed.isViewed(file),
                        onView: (isViewed) => {
                          review.viewFile(file, isViewed);
                        },
                      }}
                    />
                  )}
                  renderNote={renderNote}
                  footer={<LeftOut paths={changes.tree?.left_out ?? []} />}
                />
              </Suspense>
            )}
            {selection !== null && review.box === null && (
              <SelectionBar
                lines={selection.lines}
                cannotComment={review.cannotComment}
                onComment={() => {
                  review.openBox(selection.fileId, selection.lines);
                }}
                onCopy={review.copyLink}
                onClear={() => {
                  review.selectLines(selection.fileId, null);
                }}
              />
            )}
          </div>
        </div>
      )}
      {comments.all.length > 0 && (
        <CommentTray
          sessionId={session.id}
          comments={comments}
          turns={changes.turns}
          canOperate={canOperate}
          placeOf={review.placeOf}
          isOpen={review.isTrayOpen}
          onToggle={review.toggleTray}
          onShow={review.showComment}
          onSend={review.sendComments}
        />
      )}
      <Sheet open={openList} onOpenChange={setOpenList}>
        <SheetContent title="Changed files" side="left" className="w-96">
          <div className="flex h-full flex-col">{list(`${review.fieldId}-sheet`, 44)}</div>
        </SheetContent>
      </Sheet>
      {review.isMergeOpen && (
        <MergeDialog session={session} changes={changes} canOperate={canOperate} onClose={review.closeMerge} />
      )}
    </div>
  );
}
