import type { Window } from '../../extract/window.ts';
import { keysNeedWork } from '../rows/keys/window-keys.ts';
import { isOpen } from './window-rows.ts';

/** Independent windows are built together until they have so many bytes of CSV. */
const TOGETHER_BYTES = 64 * 1024 * 1024;

export const bytesOf = (windows: readonly Window[]): number =>
  windows.reduce((sum, { receipt }) => sum + receipt.bytes, 0);

/** True where nothing of the window's rows must be known beforehand: their keys are their ids, and no other window holds them. */
export function isIndependent(window: Window, before: Window | undefined): boolean {
  return !keysNeedWork(window.files) && !isOpen(window) && (before === undefined || !isOpen(before));
}

/** Windows in order, independent ones together; each of those that `isAlone` names by itself. */
export function groupsOf(windows: readonly Window[], isAlone: (window: Window) => boolean): Window[][] {
  const groups: Window[][] = [];
  let joins = false;
  for (const [i, window] of windows.entries()) {
    const joined = joins;
    joins = isIndependent(window, windows[i - 1]) && !isAlone(window);
    const group = groups.at(-1);
    if (group !== undefined && joined && joins && bytesOf(group) < TOGETHER_BYTES) group.push(window);
    else groups.push([window]);
  }
  return groups;
}
