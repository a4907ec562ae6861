/** Files that are dropped anywhere in the window, or pasted. */

import { useEffect, useRef, useState } from "../lib/html.js";
import { t } from "../lib/words.js";
import { say } from "./layers.js";

/** What systems and office programs leave or hide in folders: nobody means to share it. */
const LITTER = /^(?:\.|~\$|(?:thumbs\.db|desktop\.ini|__macosx)$)/i;
const NAMED = 5;

/** Call `onFiles` with the files of each drop while this is shown. Returns whether files are over the window. */
export function useFileDrop(onFiles) {
  const [over, setOver] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    const drag = (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event) => event.relatedTarget || setOver(false);
    const drop = async (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      const found = await filesOf(event.dataTransfer);
      if (found.length) latest.current(found);
    };
    addEventListener("dragover", drag);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", drag);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
  return over;
}

/**
 * Files that are pasted. Office programs paste a picture along with their text: then the text is meant. File managers
 * put names or paths there.
 */
export function pastedFiles(data) {
  const names = new Set([...data.files].map((file) => file.name));
  const lines = data.getData("text/plain").split(/\r?\n/).filter(Boolean);
  return lines.every((line) => names.has(line.split(/[/\\]/).at(-1))) ? [...data.files] : [];
}

/** The files of a chosen folder, without what systems left in it. */
export function folderFiles(files) {
  const found = files.filter((file) => !file.webkitRelativePath.split("/").slice(1).some((name) => LITTER.test(name)));
  if (!found.length) say(t("It contains no files."), "bad");
  return found;
}

/** Files of a drop, those in folders included. What can't be read is named, and doesn't stop the others. */
async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files];
  const unread = [];
  const found = (await Promise.all(entries.map((entry) => filesIn(entry, unread)))).flat();
  const names = [...unread.slice(0, NAMED), ...(unread.length > NAMED ? ["…"] : [])].join(", ");
  if (unread.length) say(t("Could not be read: {names}", { names }), "bad");
  else if (!found.length) say(t("It contains no files."), "bad");
  return found;
}

/** Where files that came with a dropped folder were in it, as `webkitRelativePath` says of chosen ones. */
export const folderPaths = new WeakMap();

async function filesIn(entry, unread) {
  try {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      const path = entry.fullPath.slice(1);
      if (path.includes("/")) folderPaths.set(file, path);
      return [file];
    }
    const reader = entry.createReader();
    const read = () => new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    const inside = [];
    for (let batch = await read(); batch.length; batch = await read()) inside.push(...batch.filter(({ name }) => !LITTER.test(name)));
    return (await Promise.all(inside.map((other) => filesIn(other, unread)))).flat();
  } catch {
    unread.push(entry.name);
    return [];
  }
}
