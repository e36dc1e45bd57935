// Files that are attached to the next message. Each is uploaded as soon as it is chosen.
import { useState } from "react";

import { uploadFile, type UploadedFile } from "./send";

interface Attached {
  key: number;
  name: string;
  file: UploadedFile | null;
  error: string | null;
}

let nextKey = 0;

export function useAttachments() {
  const [all, setAll] = useState<readonly Attached[]>([]);

  function update(key: number, change: Partial<Attached>): void {
    setAll((before) => before.map((one) => (one.key === key ? { ...one, ...change } : one)));
  }

  function add(files: readonly File[]): void {
    for (const file of files) {
      nextKey += 1;
      const key = nextKey;
      setAll((before) => [...before, { key, name: file.name, file: null, error: null }]);
      uploadFile(file).then(
        (uploaded) => {
          update(key, { file: uploaded });
        },
        (error: unknown) => {
          update(key, { error: error instanceof Error ? error.message : "was not uploaded" });
        },
      );
    }
  }

  return {
    all,
    files: all.flatMap((one) => (one.file === null ? [] : [one.file])),
    isUploading: all.some((one) => one.file === null && one.error === null),
    add,
    remove: (key: number) => {
      setAll((before) => before.filter((one) => one.key !== key));
    },
    clear: () => {
      setAll([]);
    },
  };
}
