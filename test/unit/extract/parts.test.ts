import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import receiptSchema from '../../../schemas/receipt.json' with { type: 'json' };
import stateSchema from '../../../schemas/state.json' with { type: 'json' };
import { isDay } from '../../../src/base/days.ts';
import { pauseAfter } from '../../../src/base/retry.ts';
import { Coverage } from '../../../src/extract/plan/days.ts';
import { nameDays } from '../../../src/extract/plan/gaps.ts';
import { spoolError } from '../../../src/extract/spool/spool-writer.ts';
import { parseState } from '../../../src/extract/state.ts';
import { summaryOf } from '../../../src/extract/summary.ts';
import { mergeColumns } from '../../../src/schema/merge.ts';
import type { ColumnScan } from '../../../src/schema/scan.ts';
import { EXPORT_RETRY } from '../../../src/service/export/retry.ts';
import { DOUBLE, LONG, NULL_TEXT } from '../../../src/types/evidence.ts';
import { at, Fixture, planFor, steadyRows } from '../../support/extract/extraction.ts';

const dir = mkdtempSync(join(tmpdir(), 'dfinery-test-'));
afterAll(() => rmSync(dir, { recursive: true }));
const now = at('2026-03-31T13:00:00Z');

describe('pauses', () => {
  it('grow, are spread over all of their span, and end at two minutes', () => {
    const pauses = (random: number) =>
      [1, 2, 3, 4, 12].map((attempt) => pauseAfter(attempt, EXPORT_RETRY, () => random));
    expect(pauses(1)).toEqual([1_000, 2_000, 4_000, 8_000, 120_000]);
    expect(pauses(0)).toEqual([0, 0, 0, 0, 0]);
  });
});

describe('coverage', () => {
  it('moves the cursor over what is contiguous, never past today in UTC-12 [R5][R6]', () => {
    const days = new Coverage(['2026-03-01', '2026-03-02', '2026-03-04'], undefined);
    expect(days.cursor('2026-03-01', now)).toBe('2026-03-03');
    days.add('2026-03-03', '2026-04-20');
    expect(days.cursor('2026-03-01', now)).toBe('2026-03-31');
  });

  it('names days as spans', () => {
    expect(nameDays(['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-03'])).toBe(
      '2026-02-27 to 2026-03-01, 2026-03-03',
    );
  });
});

describe('a state', () => {
  it('may be absent in every way a platform writes it', () => {
    for (const nothing of [undefined, null, {}]) expect(parseState(nothing)).toBeUndefined();
    for (const wrong of [[], 'x', 3, { version: 1 }, { from_date: '2026-03-01' }]) {
      expect(() => parseState(wrong)).toThrow(/cannot be used/);
    }
  });
});

describe('a disk', () => {
  it.each([
    ['ENOSPC', 3],
    ['EDQUOT', 3],
    ['EACCES', 2],
    ['EROFS', 2],
    ['EIO', 3],
  ])('that says %s: exit %i, the folder named', (code, exit) => {
    const failure = spoolError(Object.assign(new Error(code), { code }), '/spool');
    expect(failure).toMatchObject({ exitCode: exit });
    expect(String(failure)).toContain('/spool');
  });
});

describe('columns of parts', () => {
  const scan = (source: string, evidence: number, more: Partial<ColumnScan> = {}): ColumnScan => ({
    source,
    group: 'custom',
    evidence,
    filled: 1,
    misfits: 0,
    ...more,
  });
  it('join as sets, by name and place', () => {
    const joined = mergeColumns(
      [
        [scan('a', LONG, { type: 'long' }), scan('b', NULL_TEXT)],
        [scan('a', DOUBLE, { type: 'double' }), scan('c', LONG, { type: 'long' })],
      ],
      false,
    );
    expect(joined.map((c) => [c.source, c.type, c.filled])).toEqual([
      ['a', 'double', 2],
      ['b', undefined, 1],
      ['c', 'long', 1],
    ]);
  });
  it('keep a declared type and the whole span of time', () => {
    const system = (first: string, last: string) =>
      scan('df_server_datetime', 0, { group: 'system', type: 'datetime', first, last });
    const [column] = mergeColumns([[system('b', 'c')], [system('a', 'b')]], false);
    expect(column).toMatchObject({ type: 'datetime', first: 'a', last: 'c' });
  });
});

describe('what is written', () => {
  let fixture: Fixture;
  afterEach(() => fixture.close());
  const ajv = new Ajv({ strict: false, formats: { date: isDay, 'date-time': true } });

  it('fits its schemas, and the summary says what happened [R60]', async () => {
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows: steadyRows('2026-03-01', '2026-03-11', 6) });
    const plan = planFor(fixture.clock, fixture.target.prior(), { startDate: '2026-03-08' });
    await fixture.run({ startDate: '2026-03-08' });
    expect(ajv.validate(stateSchema, fixture.target.state), ajv.errorsText()).toBe(true);
    for (const receipt of fixture.target.receipts)
      expect(ajv.validate(receiptSchema, receipt), ajv.errorsText()).toBe(true);
    expect(new Set(fixture.target.receipts.map((r) => r.id)).size).toBe(4);
    expect(summaryOf(plan, fixture.tally)).toEqual({
      exports: 4,
      bytes: fixture.target.receipts.reduce((sum, r) => sum + r.bytes, 0),
      from_date: '2026-03-08',
      next_from_date: '2026-03-10',
      to_date_inclusive: true,
      gaps: [],
    });
  });

  it('is told as stored only once it is: a run that ends before that says the day before [R484]', async () => {
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows: steadyRows('2026-03-01', '2026-03-11', 6) });
    const plan = planFor(fixture.clock, fixture.target.prior(), { startDate: '2026-03-05' });
    await fixture.run({ startDate: '2026-03-05' }, {}, 1);
    expect(fixture.tally).toMatchObject({ committed: 1, committedRows: 6 });
    expect(summaryOf(plan, fixture.tally).next_from_date).toBe('2026-03-06');
  });

  it('warns of bytes that are no UTF-8, with the row and column of the first', async () => {
    const broken = (csv: string) => Buffer.from(csv.replaceAll('u-df_login', '\xff'), 'latin1');
    const rows = steadyRows('2026-03-08', '2026-03-08', 2);
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows, fault: () => ({ body: broken }) });
    await fixture.run({ startDate: '2026-03-08', endDate: '2026-03-08' });
    const fields = { window: '2026-03-08', cells: 2, row: 2, column: 'df_unified_id' };
    expect(fixture.events('window.invalid_utf8')).toMatchObject([{ level: 'warn', fields }]);
  });

  it('warns of a re-read with fewer rows [R11]', async () => {
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows: steadyRows('2026-03-01', '2026-03-11', 6) });
    const days = { startDate: '2026-03-08', endDate: '2026-03-08' };
    await fixture.run(days);
    for await (const window of fixture.windows(days, {}, { rowsOf: () => undefined }))
      await fixture.target.commit(window);
    expect(fixture.events('window.fewer_rows')).toEqual([]);
    for await (const window of fixture.windows(days, {}, { rowsOf: () => 7 })) await fixture.target.commit(window);
    const fields = { window: '2026-03-08', rows: 6, before: 7 };
    expect(fixture.events('window.fewer_rows')).toMatchObject([{ level: 'warn', fields }]);
    for await (const window of fixture.windows(days, {}, { rowsOf: () => 6 })) await fixture.target.commit(window);
    expect(fixture.events('window.fewer_rows').length).toBe(1);
  });
});
