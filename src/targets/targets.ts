import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isDuckDbFile } from '../fs/named-file.ts';
import { EVENTS } from '../table/tables.ts';
import type { OpenOptions, StatefulTarget, Target } from './contract.ts';
import type { FilesFormat } from './files/format.ts';
import { STATE_FILE } from './files/parquet/folder-state.ts';

export const duckdb: StatefulTarget = {
  name: 'duckdb',
  placeForms: ['FILE'],
  isAt(path) {
    try {
      return statSync(path).isFile() && isDuckDbFile(path);
    } catch {
      return false;
    }
  },
  open: async (file, options) => (await import('./duckdb/sink.ts')).openDuckDbSink(file, options),
  maintenance: async () => (await import('./duckdb/file-maintenance.ts')).MAINTENANCE,
  people: async () => (await import('./duckdb/file-people.ts')).PEOPLE,
};

/** Makes a target of one Parquet file a day. */
function filesTarget(
  descriptor: Pick<StatefulTarget, 'name' | 'placeForms' | 'isAt'>,
  loadFormat: () => Promise<FilesFormat>,
): StatefulTarget {
  return {
    ...descriptor,
    async open(address, options) {
      const [format, { openFilesSink }] = await Promise.all([loadFormat(), import('./files/files-sink.ts')]);
      return openFilesSink(format, { ...options, address });
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
  { name: 'parquet', placeForms: ['DIR'], isAt: (path) => existsSync(join(path, STATE_FILE)) },
  async () => (await import('./files/parquet/folder-manifest.ts')).PARQUET,
);
const delta = filesTarget(
  {
    name: 'delta',
    placeForms: ['DIR', 's3://BUCKET/PREFIX'],
    isAt: (path) => existsSync(join(path, EVENTS.name, '_delta_log')),
  },
  async () => (await import('./files/delta/delta-log.ts')).DELTA,
);

const STDOUT = '-';

export const arrow = {
  name: 'arrow',
  placeForms: ['FILE', STDOUT],
  isStdout: (address) => address === STDOUT,
  async open(address: string, options: OpenOptions) {
    const { openArrowSink } = await import('./arrow/arrow-sink.ts');
    return openArrowSink(address === STDOUT ? options.stdout : address, options);
  },
} satisfies Target;

/** The targets, in the order of help. */
export const STATEFUL_TARGETS: readonly StatefulTarget[] = [duckdb, parquet, delta];
export const TARGETS: readonly Target[] = [...STATEFUL_TARGETS, arrow];
