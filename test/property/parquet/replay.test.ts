import { describe, expect, it } from 'vitest';
import fc from '../../support/property.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';
import { compactParquet, purgeParquet, verifyParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

const RUNS = 2;
const TABLES = ['events', 'event_items', 'event_logs'] as const;

/** Items of one event, ids that repeat, rows without an id; any of them on any day. */
const row = fc.record({
  id: fc.constantFrom('a:0', 'a:1', 'a:2', 'b', 'c', 'd', 'e', 'f', undefined),
  day: fc.constantFrom('2026-01-01', '2026-01-02', '2026-01-03', ''),
  n: fc.constantFrom('1', '2', '2.5', 'x', ''),
  person: fc.constantFrom('u-1', 'u-2'),
});
type Row = typeof row extends fc.Arbitrary<infer R> ? R : never;
const windows = fc.array(fc.array(row, { minLength: 1, maxLength: 6 }), { minLength: 2, maxLength: 6 });

const cellsOf = ({ id, day, n, person }: Row): Cells => ({
  ...(id !== undefined && { id }),
  df_server_datetime: day === '' ? '' : `${day} 10:00:00.000`,
  df_correction_datetime: '',
  df_unified_id: person,
  df_items_k: n,
});

/** What is there: windows of one day, so that by base id the rows of the last one that had it. */
class Model {
  readonly #rows = new Map<string, Row[]>();

  take(window: readonly Row[]): void {
    const groups = new Map<string, Row[]>();
    for (const r of window) {
      const base = r.id ?? JSON.stringify(r);
      groups.set(base, [...(groups.get(base) ?? []), r]);
    }
    for (const [base, rows] of groups) this.#rows.set(base, rows);
  }

  drop(person: string): void {
    for (const [base, rows] of this.#rows) {
      this.#rows.set(
        base,
        rows.filter((r) => r.person !== person),
      );
    }
  }

  rows(): string[] {
    return [...this.#rows.values()]
      .flat()
      .map(({ id, day, person }) => `${id ?? ''}|${day}|${person}`)
      .sort();
  }

  /** Events: rows that share a log id are one; a row without one is its own. */
  logs(): number {
    const all = [...this.#rows.values()].flat();
    const named = new Set(all.flatMap(({ id }) => (id === undefined ? [] : id.replace(/:\d+$/, ''))));
    return named.size + all.filter(({ id }) => id === undefined).length;
  }
}

async function seen(fixture: ParquetFixture) {
  const rows = await fixture.read(
    `SELECT coalesce(df_event_detail_log_id, '') || '|' || coalesce(event_date::VARCHAR, '') || '|' || df_unified_id AS r
    FROM events ORDER BY r`,
  );
  const [logs] = await fixture.read('SELECT count(*)::INT AS n FROM event_logs');
  return { rows: rows.map(({ r }) => String(r)).sort(), logs: logs.n };
}

describe('a day that is read repeatedly while rows move between dates', () => {
  it('leaves the latest row of each id in every dataset', async () => {
    const property = fc.asyncProperty(windows, async (list) => {
      const fixture = new ParquetFixture();
      try {
        const model = new Model();
        for (const rows of list) model.take(rows);
        await fixture.store(
          list.map((rows) => fixture.window('2026-02-01', csvOf(rows.map(cellsOf)))),
          { tables: TABLES },
        );
        expect(await seen(fixture)).toEqual({ rows: model.rows(), logs: model.logs() });
        expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
        await compactParquet(fixture.folderOptions);
        expect(await seen(fixture)).toEqual({ rows: model.rows(), logs: model.logs() });
        if (!model.rows().some((text) => text.endsWith('u-2'))) return;
        await purgeParquet(fixture.folderOptions, { column: 'df_unified_id', ids: ['u-1'] });
        model.drop('u-1');
        expect(await seen(fixture)).toEqual({ rows: model.rows(), logs: model.logs() });
        expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
      } finally {
        fixture.close();
      }
    });
    await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
  });
});
