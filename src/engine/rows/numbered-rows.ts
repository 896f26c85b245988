import { codecOf } from '../../cells/types/types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import type { PlannedBatch, PlannedDay } from '../../table/batch-plan.ts';
import { typedColumns } from '../../table/tables.ts';
import type { Engine } from '../session/engine.ts';
import { dateSql, filesOf, filesQuery, requestedAtSql, type TypedRows } from './files-query.ts';

/**
 * Temporary table: the rows of a day in their order. `base` is the id, `t0`, `t1`… are the typed values by position.
 *
 *     rowid  base  rescued  t0
 *     7      a     NULL     5
 *     23     a     NULL     6
 */
const STAGE = '_dfinery_stage';
/**
 * Temporary table: the keys of the rows whose id an earlier row has. `ref` is the `rowid` in the stage.
 *
 *     ref  key
 *     23   a#2
 */
const KEYS = '_dfinery_keys';

/** Reads a day into temporary tables, where its repeated ids are numbered in the order of its rows. */
export async function withNumberedRows(
  engine: Engine,
  batch: PlannedBatch,
  day: PlannedDay,
  store: (rows: TypedRows) => Promise<void>,
): Promise<void> {
  await engine.keepOrder();
  const columns = typedColumns(batch.columns).filter(({ key }) => day.readings.get(key)?.readAs != null);
  const types = columns.map((c) => `t${c.position} ${codecOf(c.type, zoneOf(batch.timezone)).duckdb}`);
  const stageColumns = ['base VARCHAR', 'rescued VARCHAR', ...types].join(', ');
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${STAGE} (${stageColumns})`);
  for (const file of filesOf(day)) {
    const { ownSql, columns: fileColumns, values, from } = filesQuery(batch, [file]);
    const into = ['base', 'rescued', ...fileColumns.map(({ position }) => `t${position}`)].join(', ');
    await engine.run(`
      INSERT INTO ${STAGE} (${into})
      SELECT ${[ownSql._key, ownSql._rescued, ...values].join(', ')}
      FROM ${from}`);
  }
  await engine.run(`
    CREATE OR REPLACE TEMP TABLE ${KEYS} AS
    SELECT rowid AS ref, base || '#' || row_number() OVER (PARTITION BY base ORDER BY rowid) AS key
    FROM ${STAGE}
    WHERE base IN (SELECT base FROM ${STAGE} GROUP BY base HAVING count(*) > 1)
    QUALIFY row_number() OVER (PARTITION BY base ORDER BY rowid) > 1`);
  await store({
    from: `(SELECT s.*, coalesce(k.key, s.base) AS key FROM ${STAGE} s LEFT JOIN ${KEYS} k ON s.rowid = k.ref ORDER BY s.rowid)`,
    ownSql: {
      _key: 'key',
      event_date: dateSql(day.download.receipt.day),
      _rescued: 'rescued',
      _loaded_at: requestedAtSql(day),
    },
    columns,
    values: columns.map(({ position }) => `t${position}`),
    days: [day],
  });
  for (const table of [STAGE, KEYS]) await engine.run(`DROP TABLE ${table}`);
}
