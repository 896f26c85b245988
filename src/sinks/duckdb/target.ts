import { loaderOf } from '../load.ts';
import type { Target } from '../target.ts';

/** One DuckDB file: table `events`, the views `event_logs` and `event_items`, and the program's own tables `_dfinery_…`. */
export const duckdb: Target = {
  name: 'duckdb',
  place: { name: 'file', describe: 'The DuckDB file; made where there is none' },
  summaries: {
    sync: 'The export into a DuckDB file: table events, views event_logs and event_items',
    verify: 'The rows of a DuckDB file against its receipts; exit 1 where they differ',
    compact: 'Writes a DuckDB file anew, without the space of rows that are gone',
    report: 'One page about a DuckDB file: days, events, columns, runs',
  },
  publishes: true,
  async open(file, options) {
    const { openDuckDbSink } = await import('./sink.ts');
    if (options.publish !== undefined) {
      const [{ COPIED }, { checkCopy }] = await Promise.all([import('./store.ts'), import('../sql/copies.ts')]);
      await checkCopy(COPIED, options.publish, file, options);
    }
    const sink = await openDuckDbSink({ ...options, file });
    return { ...loaderOf(sink), publish: (copy) => sink.publish(copy) };
  },
  readPriorLoads: async (file, options) => (await import('./store.ts')).readDuckDbPriorLoads({ ...options, file }),
  verify: async (file, options) => (await import('./verify.ts')).verifyDuckDb({ ...options, file }),
  compact: async (file, options) => (await import('./rewrite.ts')).rewriteDuckDb({ ...options, file }),
  report: async (file, options) => (await import('./report.ts')).reportDuckDb({ ...options, file }),
  people: async (file, query, options) => (await import('./people.ts')).peopleInDuckDb({ ...options, file }, query),
  checkPurge: async (file, query, options) =>
    (await import('./rewrite.ts')).checkPurgeDuckDb({ ...options, file }, query),
  async purge(file, query, options) {
    const { purgeDuckDb } = await import('./rewrite.ts');
    const done = await purgeDuckDb({ ...options, file }, query, options.onFound);
    const [{ COPIED }, { republish }] = await Promise.all([import('./store.ts'), import('../sql/copies.ts')]);
    return { ...done, unreached: await republish(COPIED, { ...options, file }) };
  },
  async *rowsOfPeople(file, query, options) {
    yield* (await import('./people.ts')).rowsInDuckDb({ ...options, file }, query);
  },
};
