// Uploads the files of a task as soon as they are added.
import { useRef, useState } from "react";

import { uploadFile } from "@/api/queries/new-session";

import { changeDraft, getDraft } from "./draft-store";

export interface Upload {
  key: number;
  name: string;
  error: string | null;
}

let lastKey = 0;

export function useAttachments() {
  const [uploads, setUploads] = useState<readonly Upload[]>([]);
  const controllers = useRef(new Map<number, AbortController>());

  async function upload(file: File): Promise<void> {
    const key = ++lastKey;
    const controller = new AbortController();
    controllers.current.set(key, controller);
    setUploads((before) => [...before, { key, name: file.name, error: null }]);
    try {
      const uploaded = await uploadFile(file, controller.signal);
      const attachment = { fileId: uploaded.id, name: uploaded.filename, type: uploaded.mime_type, size: file.size };
      changeDraft({ attachments: [...getDraft().attachments, attachment] });
      setUploads((before) => before.filter((one) => one.key !== key));
    } catch (error) {
      if (!controller.signal.aborted) {
        const message = error instanceof Error ? error.message : String(error);
        setUploads((before) => before.map((one) => (one.key === key ? { ...one, error: message } : one)));
      }
    } finally {
      controllers.current.delete(key);
    }
  }

  return {
    uploads,
    isUploading: uploads.some((one) => one.error === null),
    add: (files: Iterable<File>) => {
      for (const file of files) {
        void upload(file);
      }
    },
    cancel: (key: number) => {
      controllers.current.get(key)?.abort();
      setUploads((before) => before.filter((one) => one.key !== key));
    },
    remove: (fileId: string) => {
      changeDraft({ attachments: getDraft().attachments.filter((one) => one.fileId !== fileId) });
    },
  };
}

export type Attachments = ReturnType<typeof useAttachments>;
