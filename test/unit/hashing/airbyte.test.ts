import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Json } from '../../support/airbyte/connector.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';
import { HASH_KEY, hmac } from '../../support/privacy.ts';

let fixture: SourceFixture;
beforeEach(async () => {
  fixture = await SourceFixture.start({
    columns: {
      own: [
        { name: 'mail', values: ['marked@example.com'] },
        { name: 'fax', values: ['marked-fax'] },
      ],
    },
  });
});
afterEach(() => fixture.close());

const LISTS = { columns_drop: ['fax', 'df_keyword'], columns_hash: ['mail', 'df_unified_id'], hash_key: HASH_KEY };

async function discovered(more: Json) {
  const [events] = (await fixture.run('discover', fixture.config(more))).catalog().streams;
  return (events.json_schema as { properties: Record<string, unknown> }).properties;
}

describe('the Airbyte source', () => {
  it('discovers the hashed and dropped form', async () => {
    const plain = await discovered({});
    expect(Object.keys(plain)).toEqual(expect.arrayContaining(['fax', 'mail', 'df_keyword']));
    const edited = await discovered({ ...LISTS, columns_hash: ['mail', 'df_discount'] });
    expect(Object.keys(edited)).not.toContain('fax');
    expect(Object.keys(edited)).not.toContain('df_keyword');
    expect(edited).toMatchObject({ mail: { type: ['string', 'null'] }, df_discount: { type: ['string', 'null'] } });
  });

  it('reads hashes and never a dropped column; other lists start over and say so', async () => {
    const catalog = await fixture.catalog({}, ['events']);
    const first = await fixture.read(catalog, undefined, LISTS);
    expect(first.code).toBe(0);
    expect(first.text).toContain(hmac('marked@example.com'));
    expect(first.text).not.toMatch(/marked|a hash key/);
    const changed = await fixture.read(catalog, first.lastStates(), { ...LISTS, columns_drop: [] });
    expect(changed.logs('state.fresh_start')).toEqual([
      expect.stringContaining(
        'other filters or columns (events, properties, columns_drop, columns_hash); reading starts again. The ' +
          "destination keeps its rows of days before 2026-01-15, and its rows without an id: clear the stream's data " +
          'if it should not.',
      ),
    ]);
    expect(changed.text).not.toContain('marked@example.com');
  });

  it('warns once of a misspelt name and of a shortened first run, for all streams', async () => {
    fixture.sim.setScenario({ days: { history_days: 3 } });
    const catalog = await fixture.catalog();
    const output = await fixture.read(catalog, undefined, { columns_drop: ['fox'], start_date: '2026-01-15' });
    expect([output.logs('columns.unseen').length, output.logs('plan.shortened').length]).toEqual([1, 1]);
  });
});
