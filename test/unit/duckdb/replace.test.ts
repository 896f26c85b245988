import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Engine } from '../../../src/sinks/sql/engine/engine.ts';
import { csvOf, DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

describe('a day that is read again', () => {
  it('replaces its rows, keeps those it no longer has, and moves their receipts [R23]', async () => {
    const one = fixture.window(
      '2026-01-01',
      csvOf([
        { id: 'a', n: '1' },
        { id: 'b', n: '2' },
        { id: 'c', n: '3' },
      ]),
    );
    const two = fixture.window(
      '2026-01-02',
      csvOf([
        { id: 'b', n: '20' },
        { id: 'd', n: '4' },
      ]),
    );
    await fixture.load([one, two]);
    expect(await fixture.query('SELECT _key, n, _dfinery_window AS w FROM events ORDER BY _key')).toEqual([
      { _key: 'a', n: '1', w: '1' },
      { _key: 'b', n: '20', w: '2' },
      { _key: 'c', n: '3', w: '1' },
      { _key: 'd', n: '4', w: '2' },
    ]);
    expect(await fixture.query('SELECT rows, rows_live FROM _dfinery_windows ORDER BY number')).toEqual([
      { rows: '3', rows_live: '2' },
      { rows: '2', rows_live: '2' },
    ]);
  });

  it('takes away the second row of an id that now has one', async () => {
    await fixture.load([
      fixture.window(
        '2026-01-01',
        csvOf([
          { id: 'a', n: '1' },
          { id: 'a', n: '2' },
        ]),
      ),
    ]);
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', n: '3' }]))]);
    expect(await fixture.query('SELECT _key, n FROM events')).toEqual([{ _key: 'a', n: '3' }]);
  });

  it('is an empty day as well as any other [R11]', async () => {
    const [, commit] = await fixture.load([
      fixture.window('2026-01-01', csvOf([{ id: 'a' }])),
      fixture.window('2026-01-02', csvOf([])),
    ]);
    expect(commit).toEqual({
      windows: 1,
      rows: 0,
      columnsAdded: [],
      columnsWidened: [],
      rescued: new Map(),
      idRepeats: 0,
    });
    expect(await fixture.query('SELECT count(*) AS n FROM events')).toEqual([{ n: '1' }]);
  });

  it('is remembered: state, days, event names, rows', async () => {
    await fixture.load([
      fixture.window('2026-01-01', csvOf([{ id: 'a', df_event_name: '구매' }, { id: 'b' }]), undefined, 2),
    ]);
    const sink = await fixture.open();
    const prior = await sink.readPriorLoads();
    await sink.close();
    expect(prior.state).toEqual({ version: 1, from_date: '2026-01-03' });
    expect([...prior.covered].sort()).toEqual(['2026-01-01', '2026-01-02']);
    expect(prior.eventNames).toEqual(['df_login', '구매']);
    expect(prior.rowsOf?.('2026-01-01', '2026-01-02')).toBe(2);
    expect(prior.rowsOf?.('2026-01-01', '2026-01-01')).toBeUndefined();
  });

  it('leaves nothing when it is stopped, or when its rows are not those of the receipt [R23]', async () => {
    const good = fixture.window('2026-01-01', csvOf([{ id: 'a' }]));
    const bad = fixture.window('2026-01-02', csvOf([{ id: 'b', extra: '1' }]));
    const sink = await fixture.open();
    await sink.commit([good], fixture.signal);
    const lie = { ...bad, receipt: { ...bad.receipt, rows: 2 } };
    await expect(sink.commit([lie], fixture.signal)).rejects.toMatchObject({ exitCode: 1, kind: 'system' });
    const stopped = AbortSignal.abort(new Error('stop'));
    await expect(sink.commit([bad], stopped)).rejects.toThrow('stop');
    await sink.commit([bad], fixture.signal);
    await sink.close();
    expect(await fixture.query('SELECT _key, extra FROM events ORDER BY 1')).toEqual([
      { _key: 'a', extra: null },
      { _key: 'b', extra: '1' },
    ]);
  });

  it('leaves nothing when memory is short for it, and the second try with less fails at its end [R498]', async () => {
    const sink = await fixture.open();
    await sink.commit([fixture.window('2026-01-01', csvOf([{ id: 'a', n: '1' }]))], fixture.signal);
    const run = Engine.prototype.run;
    let isShort = true;
    const failing = vi.spyOn(Engine.prototype, 'run').mockImplementation(function (this: Engine, sql, values) {
      if (isShort && sql.startsWith('INSERT INTO events')) {
        isShort = false;
        return Promise.reject(new Error('Out of Memory Error: could not allocate block'));
      }
      if (!isShort && sql.includes('SET state')) return Promise.reject(new Error('IO Error: no answer of the disk'));
      return run.call(this, sql, values);
    });
    try {
      await expect(
        sink.commit([fixture.window('2026-01-01', csvOf([{ id: 'a', n: '2' }, { id: 'b' }]))], fixture.signal),
      ).rejects.toThrow();
    } finally {
      failing.mockRestore();
    }
    expect(isShort).toBe(false);
    await sink.close();
    expect(await fixture.query('SELECT _key, n FROM events')).toEqual([{ _key: 'a', n: '1' }]);
    expect(await fixture.query('SELECT rows, rows_live FROM _dfinery_windows')).toEqual([
      { rows: '1', rows_live: '1' },
    ]);
  });

  it('never repeats a cell in a failure [R38]', async () => {
    const window = fixture.window('2026-01-01', csvOf([{ id: 'a', n: '5' }]));
    const [file] = window.files;
    const { writeFileSync } = await import('node:fs');
    writeFileSync(file.path, csvOf([{ id: 'a', n: 'canary-7' }]));
    const failure = await fixture.load([window]).catch((error: Error) => error);
    expect(failure).toMatchObject({ exitCode: 1 });
    expect(JSON.stringify(failure) + String((failure as Error).stack) + String((failure as Error).cause)).not.toContain(
      'canary',
    );
  });
});
