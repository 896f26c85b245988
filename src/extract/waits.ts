import type { OnWait } from '../service/export/retry.ts';

/**
 * For the waits of the quota and of exports that failed, of which there may be several: `show` is called with the end of
 * the one that ends first, and with undefined when none is left.
 */
export function waitsAsOne(show: (until: number | undefined) => void): OnWait {
  const ends = new Map<object | undefined, number>();
  let shown: number | undefined;
  return (until, owner) => {
    if (until === undefined) ends.delete(owner);
    else ends.set(owner, until);
    const first = ends.size === 0 ? undefined : Math.min(...ends.values());
    if (first === shown) return;
    shown = first;
    show(first);
  };
}
