import { readdir, readFile } from 'node:fs/promises';

const EVERY_MS = 50;
const PAGE = 4_096;

/**
 * Watches the memory of a process and its descendants. The returned function stops that and returns the peak in MB; 0
 * outside of Linux.
 */
export function watchMemory(pid: number): () => number {
  let peak = 0;
  const look = async () => {
    const tree = await treeOf(pid);
    const resident = await Promise.all(tree.map(residentOf));
    const highest = await Promise.all(tree.map(highestOf));
    peak = Math.max(
      peak,
      resident.reduce((sum, one) => sum + one, 0),
      ...highest,
    );
  };
  let isLooking = false;
  const timer = setInterval(async () => {
    if (isLooking) return;
    isLooking = true;
    await look();
    isLooking = false;
  }, EVERY_MS);
  return () => {
    clearInterval(timer);
    return Math.round(peak / 1e6);
  };
}

async function treeOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const children = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '')),
  );
  const below = children.flatMap((line) => line.split(' ').filter((child) => child !== ''));
  return [pid, ...(await Promise.all(below.map((child) => treeOf(Number(child))))).flat()];
}

const residentOf = async (pid: number): Promise<number> =>
  Number((await readFile(`/proc/${pid}/statm`, 'utf8').catch(() => '0 0')).split(' ')[1]) * PAGE;

const highestOf = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1_024;
};
