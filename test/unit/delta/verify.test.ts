import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TABLES } from '../../../src/table/columns.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(async () => {
  fixture = new DeltaFixture();
  const rows = [
    { id: 'a:1', n: '1', df_items_x: '1' },
    { id: 'a:2', n: '2', df_items_x: '2' },
    { id: 'b', n: '3' },
  ];
  await fixture.store([fixture.windowOf('2026-01-01', ...rows)], { tables: TABLES });
});
afterEach(() => fixture.close());

const found = async () => (await verifyDelta(fixture.lakeOptions)).map(({ check, message }) => [check, message]);

describe('verify of Delta tables', () => {
  it('names columns whose type differs from the schema', async () => {
    const [metaData] = fixture.actions('events', 0, 'metaData');
    const { fields } = JSON.parse(String(metaData.schemaString));
    const others = (change: (field: { name: string }) => object[]) => {
      const schemaString = JSON.stringify({ type: 'struct', fields: fields.flatMap(change) });
      fixture.append('events', fixture.versions(), { metaData: { ...metaData, schemaString } });
    };
    others((field) => (field.name === 'n' ? [{ ...field, type: 'double' }] : [field]));
    expect(await found()).toContainEqual(['columns', 'events: column n should be "long" in the log, and is "double"']);
    others((field) => (field.name === 'n' ? [] : [field]));
    expect(await found()).toContainEqual(['columns', 'events: column n should be "long" in the log, and is absent']);
  });

  it('names another table that follows an older version, and one that lost a race', async () => {
    const of = (table: string) =>
      fixture.actions(table, 0, 'domainMetadata').filter(({ domain }) => domain === 'dfinery.table')[0];
    const restate = (more: object) => {
      const domain = of('event_items');
      const configuration = JSON.stringify({ ...JSON.parse(String(domain.configuration)), ...more });
      fixture.append('event_items', fixture.versions('event_items'), { domainMetadata: { ...domain, configuration } });
    };
    restate({ source: 7 });
    const stale = [
      ['rows', 'event_items does not follow from the events that are there: sync again, with --tables event_items'],
    ];
    expect(await found()).toEqual(stale);
    restate({});
    expect(await found()).toEqual([]);
    restate({ source_change_id: 'other' });
    expect(await found()).toEqual(stale);
  });
});
