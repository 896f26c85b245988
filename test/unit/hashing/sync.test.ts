import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { hmac, LISTS, PrivacyFixture, person } from '../../support/privacy.ts';
import { query } from '../../support/targets/query.ts';

let fixture: PrivacyFixture;
beforeEach(async () => {
  fixture = await PrivacyFixture.start();
});
afterEach(() => fixture.close());

const PEOPLE = [1, 2, 3, 4, 5].map((n) => person(n));

describe('columns that are dropped or hashed', () => {
  it.each([...STATEFUL_TARGETS.map((target) => target.name), 'arrow'])(
    'leave no byte of a value in any file of %s, nor in messages',
    async (name) => {
      fixture.serve(PEOPLE);
      const done = await fixture.sync(LISTS, [name, fixture.at(name)]);
      expect(done.code, done.said).toBe(0);
      expect(fixture.holding('marked')).toEqual([]);
      expect(fixture.holding('phone')).toEqual([]);
      expect(done.said + done.result).not.toMatch(/marked|phone|a hash key/);
    },
  );

  it('leave no byte of a value in the spool folder, from which a killed run removes nothing', async () => {
    fixture.serve(PEOPLE);
    fixture.serve(PEOPLE, '2026-01-16');
    const filesSeen: number[][] = [];
    fixture.onExport = () => filesSeen.push(['log-1', 'marked', 'phone'].map((text) => fixture.holding(text).length));
    const done = await fixture.sync({ ...LISTS, end_date: '2026-01-16' });
    expect(done.code, done.said).toBe(0);
    // The second export comes once the first has been read.
    expect(filesSeen).toEqual([
      [0, 0, 0],
      [1, 0, 0],
    ]);
  });

  it('hold the HMAC of the unquoted value; an empty value stays empty', async () => {
    const odd = 'he said "marked", twice';
    fixture.serve([...PEOPLE, person(6, { email: odd }), person(7, { email: '' })]);
    expect((await fixture.sync()).code).toBe(0);
    const rows = await query(
      fixture.at('events.duckdb'),
      'SELECT _key, df_unified_id, email, plan, df_event_log_id FROM events ORDER BY df_server_datetime',
    );
    expect(rows).toHaveLength(7);
    expect(rows[0]).toEqual({
      _key: hmac('marked-row-1'),
      df_unified_id: hmac('marked-person-1'),
      email: hmac('marked-1@example.com'),
      plan: 'pro',
      df_event_log_id: expect.any(String),
    });
    expect(rows.slice(5).map(({ email }) => email)).toEqual([hmac(odd), null]);
    const names = await query(fixture.at('events.duckdb'), 'SELECT source_name, type FROM _dfinery_columns');
    expect(names).not.toContainEqual(expect.objectContaining({ source_name: 'phone' }));
    expect(names).toContainEqual({ source_name: 'email', type: 'string' });
  });

  it('do not make an item of a row whose item cells are the text null', async () => {
    fixture.serve([person(1, { df_items_size: 'null' }), person(2, { df_items_size: 'XL' })]);
    expect((await fixture.sync({ ...LISTS, columns_hash: ['df_items_size'] })).code).toBe(0);
    const items = await query(fixture.at('events.duckdb'), 'SELECT size FROM event_items');
    expect(items).toEqual([{ size: hmac('XL') }]);
  });

  it('are named once if no export has them', async () => {
    fixture.serve(PEOPLE);
    fixture.serve(
      PEOPLE.map((row) => ({ ...row, id: `${row.id}-next` })),
      '2026-01-16',
    );
    const lists = { ...LISTS, columns_drop: ['phone', 'Phone'], end_date: '2026-01-16' };
    const { said } = await fixture.sync(lists);
    expect(said.split('\n').filter((line) => line.includes('no export of this run had: Phone'))).toHaveLength(1);
  });
});

describe('other column lists, or another key', () => {
  beforeEach(async () => {
    fixture.serve(PEOPLE);
    expect((await fixture.sync()).code).toBe(0);
  });

  it.each([
    ['one column less', { columns_hash: ['df_unified_id'] }],
    ['no column', { columns_hash: [], columns_drop: [] }],
    ['one more dropped', { columns_drop: ['phone', 'plan'] }],
  ])('%s: are refused without --full-refresh, which warns of days that stay as they were', async (_, change) => {
    const lists = { ...LISTS, ...change };
    const refused = await fixture.sync(lists);
    expect(refused.code).toBe(2);
    expect(refused.said).toMatch(/columns_drop or columns_hash\).*--full-refresh/);
    const done = await fixture.sync(lists, undefined, '--full-refresh');
    expect(done.code, done.said).toBe(0);
    expect((await fixture.sync(lists)).code).toBe(0);
    const later = await fixture.sync({ ...LISTS, history_days: 4, end_date: undefined }, undefined, '--full-refresh');
    expect(later.said).toMatch(/2026-01-15 stay as they are. Filters, columns_drop and columns_hash do not/);
  });

  it('another key is refused for good, also once nothing is hashed any more', async () => {
    const otherKey = { ...LISTS, hash_key: 'another key that has 32 characters, too' };
    const refused = {
      code: 2,
      said: expect.stringMatching(/hashed under another hash_key: give that key, or load in/),
    };
    expect(await fixture.sync(otherKey)).toMatchObject(refused);
    const plain = { ...LISTS, columns_hash: [] };
    expect((await fixture.sync(plain, undefined, '--full-refresh')).code).toBe(0);
    expect(await fixture.sync(otherKey, undefined, '--full-refresh')).toMatchObject(refused);
    expect((await fixture.sync(LISTS, undefined, '--full-refresh')).code).toBe(0);
  });

  it('status and verify name days that keep other filters', async () => {
    const place = ['duckdb', fixture.at('other.duckdb')];
    fixture.serve(PEOPLE, '2026-01-16');
    expect((await fixture.sync({ ...LISTS, end_date: '2026-01-16' }, place)).code).toBe(0);
    const lists = { ...LISTS, columns_hash: ['df_unified_id'], end_date: '2026-01-16', history_days: 4 };
    expect((await fixture.sync(lists, place, '--full-refresh')).code).toBe(0);
    const config = ['--config', fixture.config(lists)];
    expect((await fixture.run(['status', ...place, ...config])).result).toMatch(
      /other filters or columns: 2026-01-15$/m,
    );
    expect((await fixture.run(['verify', ...place, ...config])).said).toMatch(/other filters or columns: 2026-01-15/);
  });
});
