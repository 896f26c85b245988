import { spawn } from 'node:child_process';
import { cpus } from 'node:os';

/** One finished run of a child process: its wall time, its peak memory, and the JSON on its last line of stdout. */
export interface Finished {
  readonly seconds: number;
  /** Peak resident memory of the process, MB (`VmHWM`, sampled); 0 where the system does not tell. */
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

function watchMemory(pid: number): () => number {
  let peak = 0;
  const look = async () => {
    const { readFile } = await import('node:fs/promises');
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    peak = Math.max(peak, Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024);
  };
  const timer = setInterval(() => void look(), 100);
  return () => {
    clearInterval(timer);
    return Math.round(peak);
  };
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
};

export interface Goal {
  readonly name: string;
  readonly ratio: number;
  /** `<=` : at most; `>=` : at least. */
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
