import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { cpus } from 'node:os';
import { watchMemory } from './memory.ts';

/** One finished run of a child process: its wall time, its peak memory, and the JSON on its last line of stdout. */
export interface Finished {
  readonly seconds: number;
  /** Peak resident memory of the process in MB (`VmHWM`, sampled); 0 if the system does not tell. */
  readonly peakMb: number;
  readonly answer: Readonly<Record<string, unknown>>;
}

/** Runs Node on a script and waits; throws with its stderr when it fails. */
export async function run(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  stdin: 'ignore' | number = 'ignore',
): Promise<Finished> {
  const began = performance.now();
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: [stdin, 'pipe', 'pipe'] });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => {
    out.push(chunk);
    if (out.length > 2_000) out.splice(0, 1_000);
  });
  child.stderr?.on('data', (chunk: Buffer) => err.push(chunk));
  const watch = watchMemory(child.pid ?? 0);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  const peakMb = watch();
  const seconds = (performance.now() - began) / 1_000;
  if (code !== 0)
    throw new Error(`${args.join(' ')} ended with ${code}: ${Buffer.concat(err).toString().slice(-2_000)}`);
  return { seconds, peakMb, answer: lastJson(Buffer.concat(out).toString()) };
}

function lastJson(text: string): Readonly<Record<string, unknown>> {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return {};
  }
}

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

/** Runs a command under the shell's own clock, stdout to a file if there is one; throws with its stderr when it fails. */
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
  readonly wanted: readonly ['<=' | '>=', number];
  readonly detail: string;
}

export function printGoal({ name, ratio, wanted, detail }: Goal): void {
  const [sign, limit] = wanted;
  const met = sign === '<=' ? ratio <= limit : ratio >= limit;
  console.log(`${met ? 'ok  ' : 'MISS'} ${name}: ${ratio.toFixed(2)}x (goal ${sign} ${limit}x)   ${detail}`);
}

export function printMachine(): void {
  const [cpu] = cpus();
  console.log(`${cpus().length} x ${cpu?.model ?? 'cpu'}, Node ${process.versions.node}, ${process.platform}`);
}
