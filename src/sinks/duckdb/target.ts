import { loaderOf } from '../load.ts';
import type { Target } from '../target.ts';
import { peopleInDuckDb } from './people.ts';
import { checkCopy, republish } from './publish.ts';
import { recallDuckDb } from './recall.ts';
import { reportDuckDb } from './report.ts';
import { rewriteDuckDb, tryRewriteDuckDb } from './rewrite.ts';
import { openDuckDbSink } from './sink.ts';
import { verifyDuckDb } from './verify.ts';

/** One DuckDB file: table `events`, the views `event_logs` and `event_items`, and what we remember in `_dfinery_…`. */
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
    if (options.publish !== undefined) await checkCopy(options.publish, file, options);
    const sink = await openDuckDbSink({ ...options, file });
    return { ...loaderOf(sink), publish: (copy) => sink.publish(copy) };
  },
  recall: (file, options) => recallDuckDb({ ...options, file }),
  verify: (file, options) => verifyDuckDb({ ...options, file }),
  compact: (file, options) => rewriteDuckDb({ ...options, file }),
  report: (file, options) => reportDuckDb({ ...options, file }),
  people: (file, column, texts, options) => peopleInDuckDb({ ...options, file }, column, texts),
  tryPurge: (file, leaveOut, options) => tryRewriteDuckDb({ ...options, file, leaveOut }),
  async purge(file, leaveOut, options) {
    const done = await rewriteDuckDb({ ...options, file, leaveOut });
    await republish({ ...options, file });
    return done;
  },
};
