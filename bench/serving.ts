import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Prepared } from './shapes.ts';

/** The folder of the running program, wherever a bundler put this file. */
export const HERE = dirname(process.argv[1] ?? '');
export const COMMAND = join(HERE, '..', 'bin', 'dfinery-elt.js');
export const SOURCE = join(HERE, '..', 'bin', 'source-dfinery.js');

/** Serves prepared files from a process of its own while `work` runs, every export with this fault. */
export async function serving<T>(dir: string, work: (url: string) => Promise<T>, fault: object = {}): Promise<T> {
  const child = spawn(process.execPath, [join(HERE, 'serve.js'), dir, JSON.stringify(fault)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      return await work((JSON.parse(line) as { url: string }).url);
    }
    throw new Error('the server did not start');
  } finally {
    child.kill();
  }
}

/** Makes a scratch folder with a configuration in it; removes it afterwards. */
export async function scratch<T>(url: string, work: (dir: string, config: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'dfinery-bench-'));
  const config = join(dir, 'config.json');
  const value = {
    base_url: url,
    service_id: 'bench',
    export_token: 'bench-export',
    spool_dir: dir,
    history_days: 60,
    to_date_inclusive: 'true',
  };
  writeFileSync(config, JSON.stringify(value));
  try {
    return await work(dir, config);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

export const span = ({ days }: Prepared) => ['--from', days[0] ?? '', '--to', days.at(-1) ?? ''];
