const PRIVATE = 0o077;

let users = 0;
let before: number | undefined;

/**
 * Sets the umask so that only their owner may read the files that this process makes, while at least one caller holds
 * it: for an engine that creates files by itself. Returns a function that releases the hold; the last release restores
 * the umask. In a worker thread, where the umask cannot be set, that of the process stays.
 */
export function holdPrivateUmask(): () => void {
  if (users++ === 0) before = setUmask(PRIVATE);
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    if (--users === 0 && before !== undefined) setUmask(before);
  };
}

function setUmask(mask: number): number | undefined {
  try {
    return process.umask(mask);
  } catch {
    return undefined;
  }
}
