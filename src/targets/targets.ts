import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isDatabase } from '../fs/named-file.ts';
import { arrow } from './arrow/arrow-target.ts';
import type { StatefulTarget, Target } from './contract.ts';
import { duckdb } from './duckdb/duckdb-target.ts';
import type { FilesFormat } from './files/format.ts';
import { STATE_FILE } from './files/parquet/folder-state.ts';

/** Makes a target of one Parquet file a day. */
function filesTarget(
  descriptor: Pick<StatefulTarget, 'name' | 'placeForms'>,
  loadFormat: () => Promise<FilesFormat>,
): StatefulTarget {
  return {
    ...descriptor,
    async open(place, options) {
      const [format, { openFilesSink }] = await Promise.all([loadFormat(), import('./files/files-sink.ts')]);
      return openFilesSink(format, { ...options, address: place });
    },
    async maintenance() {
      const [format, { maintenanceOf }] = await Promise.all([loadFormat(), import('./files/maintenance.ts')]);
      return maintenanceOf(format);
    },
    async people() {
      const [format, { peopleIn }] = await Promise.all([loadFormat(), import('./files/people-in-files.ts')]);
      return peopleIn(format);
    },
  };
}

const parquet = filesTarget(
  { name: 'parquet', placeForms: ['DIR'] },
  async () => (await import('./files/parquet/folder-log.ts')).PARQUET,
);
const delta = filesTarget(
  { name: 'delta', placeForms: ['DIR', 's3://BUCKET/PREFIX'] },
  async () => (await import('./files/delta/delta-log.ts')).DELTA,
);

/** The targets, in the order of help. */
export const STATEFUL_TARGETS: readonly StatefulTarget[] = [duckdb, parquet, delta];
export const TARGETS: readonly Target[] = [...STATEFUL_TARGETS, arrow];

/** The name of the target whose form a place on this disk has, loaded or not; undefined if it has none. */
export function targetAt(path: string): string | undefined {
  try {
    if (statSync(path).isFile()) return isDatabase(path) ? 'duckdb' : undefined;
    if (existsSync(join(path, STATE_FILE))) return 'parquet';
    return existsSync(join(path, 'events', '_delta_log')) ? 'delta' : undefined;
  } catch {
    return undefined;
  }
}
