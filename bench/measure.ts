import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { cpus } from 'node:os';

/** A finished command, from the start of its process to its end. */
export interface Measured {
  readonly seconds: number;
  /** Processor time of the process and of all processes that it started and waited for. */
  readonly cpuSeconds: number;
  /** Peak resident memory of the process and its descendants together, sampled. */
  readonly peakMb: number;
  /** The end of what it wrote to stdout, unless stdout went to a file. */
  readonly stdout: string;
}

const TIMED = 'TIMEFORMAT="cpu %U %S"; time "$@"';

/** Runs a command under the clock of the shell, stdout to a file if one is named. Throws with its stderr if it fails. */
export async function measured(
  command: readonly string[],
  out?: string,
  env: NodeJS.ProcessEnv = {},
): Promise<Measured> {
  const fd = out === undefined ? undefined : openSync(out, 'w');
  const began = performance.now();
  const child = spawn('bash', ['-c', TIMED, 'bash', ...command], {
    stdio: ['ignore', fd ?? 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout = (stdout + chunk.toString()).slice(-KEPT);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-KEPT);
  });
  const peak = watchMemory(child.pid ?? 0);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  const seconds = (performance.now() - began) / 1_000;
  const peakMb = peak();
  if (fd !== undefined) closeSync(fd);
  if (code !== 0) throw new CommandFailure(command, code, stderr, stdout);
  const [, user, system] = /cpu ([\d.]+) ([\d.]+)\s*$/.exec(stderr) ?? [];
  return { seconds, cpuSeconds: Number(user) + Number(system), peakMb, stdout };
}

/** Number of characters of a stream that are kept. */
const KEPT = 20_000;

export class CommandFailure extends Error {
  readonly code: number | null;

  constructor(command: readonly string[], code: number | null, stderr: string, stdout: string) {
    super(`${command.join(' ')} ended with ${code}: ${stderr.slice(-2_000)}${stdout.slice(-500)}`);
    this.code = code;
  }
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
};

export interface Goal {
  readonly name: string;
  readonly ratio: number;
  /** `<=` means at most, `>=` at least. */
  readonly goal: readonly ['<=' | '>=', number];
  readonly detail: string;
}

export function printGoal({ name, ratio, goal, detail }: Goal): void {
  const [sign, limit] = goal;
  const met = sign === '<=' ? ratio <= limit : ratio >= limit;
  console.log(`${met ? 'ok  ' : 'MISS'} ${name}: ${ratio.toFixed(2)}x (goal ${sign} ${limit}x)   ${detail}`);
}

export function printMachine(): void {
  const [cpu] = cpus();
  console.log(`${cpus().length} x ${cpu?.model ?? 'cpu'}, Node ${process.versions.node}, ${process.platform}`);
}

const EVERY_MS = 50;
const PAGE = 4_096;

/**
 * Watches the memory of a process and its descendants. The returned function stops that and returns the peak in MB; 0
 * outside of Linux.
 */
function watchMemory(pid: number): () => number {
  let peak = 0;
  const look = async () => {
    const tree = await treeOf(pid);
    const resident = await Promise.all(tree.map(residentOf));
    const highest = await Promise.all(tree.map(highestOf));
    peak = Math.max(
      peak,
      resident.reduce((sum, bytes) => sum + bytes, 0),
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
