const PRIVATE = 0o077;

let users = 0;
let before: number | undefined;

/**
 * While anybody holds it, all that this process makes is its owner's alone: for an engine that makes files by itself,
 * whose modes nobody asks for. Returns how to let go of it, once; the last to do so gives the process its umask back.
 * In a worker thread, where the umask cannot be set, that of the process stays.
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
