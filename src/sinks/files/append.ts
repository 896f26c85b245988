import { isRetyped } from '../../table/plan.ts';
import { columnsIn } from './columns.ts';
import type { WriteMode } from './log.ts';

/**
 * The mode for a log that names the files. Files of a batch are added as they are, so that a date may have several
 * files. A file lacks columns without a value: such a column can change its type later without a new file (S43).
 */
export const APPEND: WriteMode = {
  fileName: (id) => `part-${id}.parquet`,

  /** The columns from which keys, dates and items are computed are in every file. */
  newColumns: (plan) =>
    plan.filter(({ isRefused, type, readAs, group }) => {
      const isEverywhere = group === 'system' || group === 'unified_id';
      return isRefused || (type !== null && (readAs !== null || isEverywhere));
    }),

  keptColumns: (plan, names) => columnsIn(plan, names),

  eventsAfter(plan, stored, incoming) {
    const retyped = plan.filter(isRetyped);
    const changed = stored.filter(
      ({ file, rows }) => rows < file.rows || retyped.some(({ name }) => file.columns.has(name)),
    );
    const left = changed.filter(({ rows }) => rows > 0);
    return {
      removed: changed.map(({ file }) => file),
      written: [
        ...left.map((kept) => ({ date: kept.file.date, kept, incoming: [] })),
        ...incoming.map((one) => ({ date: one.date, kept: undefined, incoming: [one] })),
      ],
    };
  },

  fits(table, actual, expected) {
    return table !== 'events' || JSON.stringify([...actual].sort()) === JSON.stringify([...expected].sort());
  },
};
