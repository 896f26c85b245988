import { withCopies } from '../copies/with-copies.ts';
import { filesTarget } from '../files/files-target.ts';
import type { StatefulTarget } from '../target.ts';

export const ducklake: StatefulTarget = withCopies(
  filesTarget(
    {
      name: 'ducklake',
      place: { name: 'file', describe: 'The catalog, a DuckDB file; made where there is none' },
      label: 'DuckLake tables',
      markers: ['_dfinery/catalog'],
      summaries: {
        sync: 'The export into tables of DuckLake: a catalog in a DuckDB file, data in a folder or a bucket',
        compact: 'Makes the files of each date of DuckLake tables one, sorted; drops those without rows',
      },
      options: {
        data: 'Folder or s3://BUCKET/PREFIX of the data, fixed by the first run; by default the place with .files',
      },
    },
    async () => (await import('./log.ts')).DUCKLAKE,
  ),
  async () => (await import('./catalog.ts')).COPIED,
);
