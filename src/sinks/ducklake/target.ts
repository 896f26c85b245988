import { filesTarget } from '../files/target.ts';
import { loaderOf } from '../load.ts';
import type { Target } from '../target.ts';

const format = async () => (await import('./log.ts')).DUCKLAKE;

const files = filesTarget(
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
    publishes: true,
  },
  format,
);

/** Tables of DuckLake: a catalog in a DuckDB file, data in a folder or a bucket. A batch of windows is one snapshot. */
export const ducklake: Target = {
  ...files,
  async open(place, options) {
    const [{ COPIED }, { checkCopy, publish }] = await Promise.all([
      import('./catalog.ts'),
      import('../sql/copies.ts'),
    ]);
    if (options.publish !== undefined) await checkCopy(COPIED, options.publish, place, options);
    const { openFilesSink } = await import('../files/load.ts');
    const loader = loaderOf(await openFilesSink(await format(), { ...options, place }));
    const file = { ...options, file: place };
    return {
      ...loader,
      publish: (copy) => COPIED.withFile(file, (engine) => publish(COPIED, engine, copy, options)),
    };
  },
  async purge(place, query, options) {
    const { purgeFiles } = await import('../files/purge.ts');
    const done = await purgeFiles(await format(), { ...options, place }, query, options.onFound);
    const [{ COPIED }, { republish }] = await Promise.all([import('./catalog.ts'), import('../sql/copies.ts')]);
    return { ...done, unreached: await republish(COPIED, { ...options, file: place }) };
  },
};
