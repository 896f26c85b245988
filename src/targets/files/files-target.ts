import type { Maintenance } from '../maintenance.ts';
import type { People } from '../people.ts';
import type { StatefulTarget } from '../target.ts';
import type { FilesFormat } from './files-format.ts';

type Descriptor = Omit<StatefulTarget, 'open' | 'maintenance' | 'people' | 'markers'> &
  Required<Pick<StatefulTarget, 'markers'>>;

/** Makes a target that keeps Parquet files, over the log and the storage of its format. */
export function filesTarget(descriptor: Descriptor, load: () => Promise<FilesFormat>): StatefulTarget {
  return {
    ...descriptor,
    async open(place, options) {
      const [format, { openFilesSink }] = await Promise.all([load(), import('./load.ts')]);
      return openFilesSink(format, { ...options, place });
    },
    async maintenance(): Promise<Maintenance> {
      const [format, { readFilesState }, { verifyFiles }, { compactFiles }, { reportFiles }] = await Promise.all([
        load(),
        import('./file-table.ts'),
        import('./verify.ts'),
        import('./rewrite.ts'),
        import('./report.ts'),
      ]);
      return {
        readState: (place, options) => readFilesState(format, { ...options, place }),
        verify: (place, options) => verifyFiles(format, { ...options, place }),
        compact: (place, options) => compactFiles(format, { ...options, place }),
        report: (place, options) => reportFiles(format, { ...options, place }),
      };
    },
    async people(): Promise<People> {
      const [format, purge] = await Promise.all([load(), import('./purge.ts')]);
      return {
        find: (place, query, options) => purge.peopleInFiles(format, { ...options, place }, query),
        rows: (place, query, options) => purge.rowsOfPeopleInFiles(format, { ...options, place }, query),
        tryPurge: (place, query, options) => purge.tryPurgeFiles(format, { ...options, place }, query),
        purge: (place, query, options) => purge.purgeFiles(format, { ...options, place }, query),
      };
    },
  };
}
