import { GROUP_AND_OTHERS_BITS } from './permissions.ts';

let umaskHolders = 0;
let umaskBefore: number | undefined;

/**
 * Sets a umask of the owner alone while at least one caller holds it: DuckDB creates files by itself. The function that
 * it returns releases the hold, once. A worker thread cannot set the umask: that of the process stays.
 */
export function holdPrivateUmask(): () => void {
  if (umaskHolders++ === 0) umaskBefore = setUmask(GROUP_AND_OTHERS_BITS);
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    if (--umaskHolders === 0 && umaskBefore !== undefined) setUmask(umaskBefore);
  };
}

function setUmask(mask: number): number | undefined {
  try {
    return process.umask(mask);
  } catch {
    return undefined;
  }
}
