import { groupBy } from '../../base/group.ts';
import type { WriteMode } from '../files/log.ts';

/**
 * The mode for readers that find the files by a glob pattern: one file for each date, under a name that never changes,
 * and the same columns in the same order in all files (S29, S30). A batch rewrites the dates of its rows.
 */
export const OVERWRITE: WriteMode = {
  fileName: () => 'data_0.parquet',
  newColumns: (plan) => plan,
  keptColumns: (plan) => plan,

  eventsAfter(plan, stored, incoming) {
    const byDate = groupBy(incoming, ({ date }) => date);
    const hasNewColumns = plan.some(({ type, before }) => type !== before);
    const changed = stored.filter(({ file, rows }) => rows < file.rows || byDate.has(file.date) || hasNewColumns);
    const left = new Map(changed.filter(({ rows }) => rows > 0).map((kept) => [kept.file.date, kept]));
    const dates = new Set([...left.keys(), ...byDate.keys()]);
    return {
      removed: changed.map(({ file }) => file),
      written: [...dates].map((date) => ({ date, kept: left.get(date), incoming: byDate.get(date) ?? [] })),
    };
  },

  fits: (_table, actual, expected) => JSON.stringify(actual) === JSON.stringify(expected),
};
