import { loaderOf } from '../load.ts';
import type { Target } from '../target.ts';

/** Delta Lake tables in a folder or a bucket, a window a commit. */
export const delta: Target = {
  name: 'delta',
  place: { name: 'url', describe: 'A folder, or s3://BUCKET/PREFIX; made where there is none' },
  summaries: {
    sync: 'The export into Delta Lake tables, in a folder or a bucket: a window is a commit',
    verify: 'The files of Delta tables against their log and receipts; exit 1 where they differ',
    compact: 'Makes the files of each date one, sorted; drops those without rows',
    report: 'One page about Delta tables: days, events, columns, runs',
  },
  open: async (url, options) => loaderOf(await (await import('./sink.ts')).openDeltaSink({ ...options, url })),
  readPriorLoads: async (url, options) => (await import('./prior-loads.ts')).readDeltaPriorLoads({ ...options, url }),
  verify: async (url, options) => (await import('./verify.ts')).verifyDelta({ ...options, url }),
  compact: async (url, options) => (await import('./rewrite.ts')).compactDelta({ ...options, url }),
  report: async (url, options) => (await import('./report.ts')).reportDelta({ ...options, url }),
  people: async (url, query, options) => (await import('./people.ts')).peopleInDelta({ ...options, url }, query),
  checkPurge: async (url, query, options) => (await import('./purge.ts')).checkPurgeDelta({ ...options, url }, query),
  purge: async (url, query, options) =>
    (await import('./purge.ts')).purgeDelta({ ...options, url }, query, options.onFound),
  async *rowsOfPeople(url, query, options) {
    yield* (await import('./people.ts')).rowsInDelta({ ...options, url }, query);
  },
};
