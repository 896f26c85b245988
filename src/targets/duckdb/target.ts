import { withCopies } from '../copies/with-copies.ts';
import type { Maintenance } from '../maintenance.ts';
import type { People } from '../people.ts';
import type { StatefulTarget } from '../target.ts';

export const duckdb: StatefulTarget = withCopies(
  {
    name: 'duckdb',
    place: { name: 'file', describe: 'The DuckDB file; made where there is none' },
    label: 'a DuckDB file',
    summaries: {
      sync: 'The export into a DuckDB file: table events, views event_logs and event_items',
      compact: 'Writes a DuckDB file anew, without the space of rows that are gone',
    },
    async open(file, options) {
      const { openDuckDbSink } = await import('./sink.ts');
      return openDuckDbSink({ ...options, file });
    },
    async maintenance(): Promise<Maintenance> {
      const [read, { rewriteDuckDb }] = await Promise.all([import('./read.ts'), import('./rewrite.ts')]);
      return {
        readState: (file, options) => read.readDuckDbState({ ...options, file }),
        verify: (file, options) => read.verifyDuckDb({ ...options, file }),
        compact: (file, options) => rewriteDuckDb({ ...options, file }),
        report: (file, options) => read.reportDuckDb({ ...options, file }),
      };
    },
    async people(): Promise<People> {
      const [read, rewrite] = await Promise.all([import('./read.ts'), import('./rewrite.ts')]);
      return {
        find: (file, query, options) => read.peopleInDuckDb({ ...options, file }, query),
        rows: (file, query, options) => read.rowsInDuckDb({ ...options, file }, query),
        tryPurge: (file, query, options) => rewrite.tryPurgeDuckDb({ ...options, file }, query),
        purge: (file, query, options) => rewrite.purgeDuckDb({ ...options, file }, query),
      };
    },
  },
  async () => (await import('./store.ts')).COPIED,
);
