import type { StatefulTarget } from '../contract.ts';

export const duckdb: StatefulTarget = {
  name: 'duckdb',
  placeKind: 'file',
  async open(file, options) {
    const { openDuckDbSink } = await import('./sink.ts');
    return openDuckDbSink({ ...options, file });
  },
  async maintenance() {
    const [read, { pruneDuckDb }] = await Promise.all([import('./read.ts'), import('./remove.ts')]);
    return {
      readState: (file, options) => read.readDuckDbState({ ...options, file }),
      verify: (file, options) => read.verifyDuckDb({ ...options, file }),
      report: (file, options) => read.reportDuckDb({ ...options, file }),
      prune: (file, before, options) => pruneDuckDb({ ...options, file }, before),
    };
  },
  async people() {
    const [read, remove] = await Promise.all([import('./read.ts'), import('./remove.ts')]);
    return {
      find: (file, query, options) => read.peopleInDuckDb({ ...options, file }, query),
      rows: (file, query, options) => read.rowsInDuckDb({ ...options, file }, query),
      previewPurge: (file, query, options) => remove.previewPurgeDuckDb({ ...options, file }, query),
      purge: (file, query, options) => remove.purgeDuckDb({ ...options, file }, query),
    };
  },
};
