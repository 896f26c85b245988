import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isDuckDbFile } from '../fs/named-file.ts';
import { TABLES } from '../table/tables.ts';
import type { LoadOptions, Place, StatefulTarget, Target } from './contract.ts';
import type { FilesFormat } from './files/format.ts';
import { STATE_FILE } from './files/parquet/folder-state.ts';

export const duckdb: StatefulTarget = {
  name: 'duckdb',
  placeForms: ['FILE'],
  hasPlaceAt(path) {
    try {
      return statSync(path).isFile() && isDuckDbFile(path);
    } catch {
      return false;
    }
  },
  open: async (options) => (await import('./duckdb/duckdb-sink.ts')).openDuckDbSink(options),
  maintenance: async (options) => (await import('./duckdb/file-maintenance.ts')).maintenanceOfFile(options),
  peopleOperations: async (options) => (await import('./duckdb/file-people.ts')).peopleOperationsOfFile(options),
};

/** Makes a target of one Parquet file a day. */
function filesTarget(
  descriptor: Pick<StatefulTarget, 'name' | 'placeForms' | 'hasPlaceAt'>,
  loadFormat: () => Promise<FilesFormat>,
): StatefulTarget {
  return {
    ...descriptor,
    open: async (options) => (await import('./files/files-sink.ts')).openFilesSink(await loadFormat(), options),
    maintenance: async (options) =>
      (await import('./files/maintenance.ts')).maintenanceOfFiles(await loadFormat(), options),
    peopleOperations: async (options) =>
      (await import('./files/people-in-files.ts')).peopleOperationsOfFiles(await loadFormat(), options),
  };
}

const parquet = filesTarget(
  { name: 'parquet', placeForms: ['DIR'], hasPlaceAt: (path) => existsSync(join(path, STATE_FILE)) },
  async () => (await import('./files/parquet/parquet-format.ts')).PARQUET,
);
const delta = filesTarget(
  {
    name: 'delta',
    placeForms: ['DIR', 's3://BUCKET/PREFIX'],
    // A first load may have stored profiles alone.
    hasPlaceAt: (path) => TABLES.some(({ name }) => existsSync(join(path, name, '_delta_log'))),
  },
  async () => (await import('./files/delta/delta-format.ts')).DELTA,
);

/** The address of a place that is the program's own stdout. */
const STDOUT_ADDRESS = '-';

export const arrow = {
  name: 'arrow',
  placeForms: ['FILE', STDOUT_ADDRESS],
  hasPlaceAt: () => false,
  async open(options: LoadOptions) {
    const pathOrStream = options.address === STDOUT_ADDRESS ? options.stdout : options.address;
    return (await import('./arrow/arrow-sink.ts')).openArrowSink(pathOrStream, options);
  },
} satisfies Target;

/** True where the data of a run go to stdout, so that nothing else may. */
export const isStdout = ({ target, address }: Pick<Place, 'target' | 'address'>): boolean =>
  target === arrow && address === STDOUT_ADDRESS;

/** The targets, in the order of help. */
export const STATEFUL_TARGETS: readonly StatefulTarget[] = [duckdb, parquet, delta];
export const TARGETS: readonly Target[] = [...STATEFUL_TARGETS, arrow];

/** True for a place of a target that stores its loads. */
export const isStateful = (place: Place): place is Place<StatefulTarget> =>
  STATEFUL_TARGETS.some((target) => target === place.target);
