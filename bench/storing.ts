import { fork } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Asked } from './bucket.ts';
import { HERE } from './serving.ts';

/** A bucket that runs may write into. */
export interface Store {
  readonly env: NodeJS.ProcessEnv;
  /** Returns the requests since the last call, and empties the bucket. */
  take(): Promise<Asked>;
}

/** Runs a bucket in a process of its own while `work` runs. */
export async function storing<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const child = fork(join(HERE, 'bucket.js'), { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  const take = () =>
    new Promise<Asked>((resolve) => {
      child.once('message', (message) => resolve(message as Asked));
      child.send('take');
    });
  try {
    if (child.stdout !== null) {
      for await (const line of createInterface({ input: child.stdout })) {
        return await work({ env: JSON.parse(line) as NodeJS.ProcessEnv, take });
      }
    }
    throw new Error('the bucket did not start');
  } finally {
    child.kill();
  }
}

/**
 * Requests of a run for its windows, without those for opening and closing, whose number does not depend on the
 * windows.
 */
export function requestsOf({ requests }: Asked, windows: number) {
  const isData = ({ what, key }: Asked['requests'][number]) => what === 'PutObject' && key.endsWith('.parquet');
  const isOfRun = ({ key }: Asked['requests'][number]) => key.includes('/_dfinery/');
  const first = requests.findIndex(isData);
  const loading = requests.slice(first).filter((one) => !isOfRun(one) && one.what !== 'DeleteObjects');
  const counts = new Map<string, number>();
  for (const { what } of loading) counts.set(what, (counts.get(what) ?? 0) + 1);
  const kinds = [...counts].map(([what, n]) => `${(n / windows).toFixed(1)} ${what}`).join(', ');
  return { all: requests.length, once: requests.length - loading.length, window: loading.length / windows, kinds };
}
