import { filesTarget } from '../files/target.ts';
import { withCopies } from '../sql/copies.ts';
import type { StatefulTarget } from '../target.ts';

/** Tables of DuckLake: a catalog in a DuckDB file, data in a folder or a bucket. A batch of windows is one snapshot. */
export const ducklake: StatefulTarget = withCopies(
  filesTarget(
    {
      name: 'ducklake',
      place: { name: 'file', describe: 'The catalog, a DuckDB file; made where there is none' },
      summaries: {
        sync: 'The export into tables of DuckLake: a catalog in a DuckDB file, data in a folder or a bucket',
        verify: 'The files of DuckLake tables against their catalog and receipts; exit 1 where they differ',
        compact: 'Makes the files of each date of DuckLake tables one, sorted; drops those without rows',
        report: 'One page about DuckLake tables: days, events, columns, runs',
      },
      hasData: true,
    },
    async () => (await import('./log.ts')).DUCKLAKE,
  ),
  async () => (await import('./catalog.ts')).COPIED,
);
