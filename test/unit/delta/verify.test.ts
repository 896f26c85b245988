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

  it.each([
    ['no JSON', '{', 'it is not JSON'],
    ['no object', '[]', 'it must be object'],
    ['a list of columns that is none', '{"fields":3}', 'fields must be array'],
    ['a column without a name', '{"fields":[{}]}', "fields/0 must have required property 'name'"],
  ])('and a load refuse a schema with %s', async (_what, schemaString, why) => {
    const [metaData] = fixture.actions('events', 0, 'metaData');
    fixture.append('events', fixture.versions(), { metaData: { ...metaData, schemaString } });
    const message = expect.stringContaining(`events (schemaString) cannot be used: ${why}`);
    await expect(verifyDelta(fixture.lakeOptions)).rejects.toMatchObject({ exitCode: 2, message });
    const store = fixture.store([fixture.windowOf('2026-01-02', { id: 'c', n: '4' })]);
    await expect(store).rejects.toMatchObject({ exitCode: 2, message });
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

describe('columns and comments that another program added to a Delta table', () => {
  const fields = (): { name: string; type: unknown; metadata: object }[] => {
    const [metaData] = fixture.actions('events', fixture.versions() - 1, 'metaData');
    return JSON.parse(String(metaData.schemaString)).fields;
  };

  it('stay when an export brings a column', async () => {
    const [before] = fixture.actions('events', 0, 'metaData');
    const own = JSON.parse(String(before.schemaString)).fields as { name: string }[];
    const comment = { comment: 'by the team' };
    const commented = own.map((field) => (field.name === 'n' ? { ...field, metadata: comment } : field));
    const theirs = [
      {
        name: 'team',
        type: { type: 'array', elementType: 'integer', containsNull: true },
        nullable: true,
        metadata: {},
      },
      { name: 'Later', type: 'integer', nullable: true, metadata: comment },
    ];
    const schemaString = JSON.stringify({ type: 'struct', fields: [...commented, ...theirs] });
    fixture.append('events', fixture.versions(), { metaData: { ...before, description: 'events', schemaString } });
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'c', n: '4' })]);
    expect(fixture.actions('events', fixture.versions() - 1, 'metaData')).toEqual([]);
    await fixture.store([fixture.windowOf('2026-01-03', { id: 'd', n: '5', m: '6' })]);
    const [after] = fixture.actions('events', fixture.versions() - 1, 'metaData');
    expect(after.description).toBe('events');
    expect(fields().filter(({ name }) => ['n', 'm', 'team', 'Later'].includes(name))).toEqual([
      { name: 'n', type: 'long', nullable: true, metadata: comment },
      { name: 'm', type: 'long', nullable: true, metadata: {} },
      ...theirs,
    ]);
    await fixture.store([fixture.windowOf('2026-01-04', { id: 'e', later: 'x' })]);
    const later = { name: 'later', type: 'string', nullable: true, metadata: comment };
    expect(fields().filter(({ name }) => name.toLowerCase() === 'later')).toEqual([later]);
    expect(await found()).toEqual([]);
  });
});

describe('rows that another program removed from a Delta table', () => {
  const days = ['2026-01-02', '2026-01-03'] as const;
  beforeEach(async () => {
    for (const day of days) await fixture.store([fixture.windowOf(day, { id: day, n: '4' })]);
  });

  /** Removes the files of these dates in one commit, as a DELETE of whole partitions does. */
  const remove = async (...dates: readonly string[]) => {
    const gone = await fixture.withTable((events) =>
      events.files().flatMap(({ date, path }) => (dates.includes(String(date)) ? [events.addOf(path).path] : [])),
    );
    const lines = gone.map((path) => ({ remove: { path, deletionTimestamp: Date.now(), dataChange: true } }));
    fixture.append('events', fixture.versions(), ...lines);
  };
  const told = () => fixture.log.filter(({ event }) => event === 'table.rows_removed').map(({ message }) => message);

  it('are named by verify with their windows, and by the next load, which goes on', async () => {
    expect(await found()).toEqual([]);
    await remove(...days);
    const lost = (window: number, day: string) => [
      'rows',
      `window ${window} (${day} to ${day}) should have 1 row of its 1, and has 0`,
    ];
    const stale = (await found()).filter(([, message]) => String(message).startsWith('window'));
    expect(stale).toEqual([lost(2, days[0]), lost(3, days[1])]);
    expect(told()).toEqual([]);
    await fixture.store([fixture.windowOf('2026-01-04', { id: 'd', n: '5' })]);
    expect(told()).toEqual([
      `${fixture.root}/events: another program removed 2 rows of 2026-01-02 to 2026-01-03, without which this run goes on. ` +
        'To load what the service still has of them: sync with --from 2026-01-02 --to 2026-01-03.',
    ]);
    await fixture.store([fixture.windowOf('2026-01-03', { id: days[1], n: '4' })]);
    expect(told()).toHaveLength(1);
    expect(await found()).toEqual([]);
  });

  it('are not looked for where a log of an earlier version does not say what there was', async () => {
    const version = fixture.versions() - 1;
    const [domain] = fixture.actions('events', version, 'domainMetadata').filter((d) => d.domain === 'dfinery.table');
    const { live, ...info } = JSON.parse(String(domain.configuration));
    expect(live).toEqual({ 1: 3, 2: 1, 3: 1 });
    fixture.append('events', version + 1, { domainMetadata: { ...domain, configuration: JSON.stringify(info) } });
    await remove(days[0]);
    await fixture.store([fixture.windowOf('2026-01-04', { id: 'd', n: '5' })]);
    expect(told()).toEqual([]);
  });
});
