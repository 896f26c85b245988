import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { StreamName } from '../../../src/airbyte/records/streams.ts';
import { discoveredStream } from '../../../src/airbyte/source/discover.ts';
import { RecordFixture, streamOf } from '../../support/targets/records.ts';

const fixture = new RecordFixture();

const KEYS = ['df_event_detail_log_id', 'df_event_log_id'];
const nameWithHash = (name: string, source: string): string =>
  `${name}_${createHash('sha256').update(source).digest('hex').slice(0, 6)}`;
const withHash = (name: string): string => nameWithHash(name, name);

/** The properties of a stream in the catalog that `discover` prints for these columns. */
function propertiesOf(stream: StreamName, columns: readonly string[]): string[] {
  const typed = columns.map((source) => ({ source, type: 'string' }) as const);
  return Object.keys(discoveredStream(stream, typed, undefined).json_schema.properties ?? {});
}

describe('the properties of a discovered catalog', () => {
  it('are those of the three streams, each with its columns', () => {
    const columns = [...KEYS, 'df_unified_id', 'df_server_datetime', 'mine', 'df_items_df_price', 'df_items_mine'];
    const [log, system] = [KEYS, ['df_unified_id', 'df_server_datetime']];
    expect(propertiesOf('events', columns)).toEqual(['_key', '_rescued', ...columns]);
    expect(propertiesOf('event_logs', columns)).toEqual(['_rescued', ...log, ...system, 'mine']);
    const own = ['_key', '_rescued', 'item_position'];
    expect(propertiesOf('event_items', columns)).toEqual([...own, ...log, ...system, 'df_price', 'mine']);
  });

  it('keep the prefix of an item column whose short name is taken', () => {
    const columns = [
      'df_unified_id',
      'df_items_DF_Unified_Id',
      'df_items__key',
      'df_items_item_position',
      'df_items_X',
      'df_items_x',
    ];
    expect(propertiesOf('event_items', columns).slice(3)).toEqual([...columns.slice(0, -1), 'x']);
  });

  it('have a hash for a column with a reserved name, and for the second of equal names', () => {
    const columns = ['_rescued', '_key', '_key_2', 'item_position', 'twice', 'twice', '', ''];
    expect(propertiesOf('events', columns).slice(2)).toEqual([
      withHash('_rescued'),
      withHash('_key'),
      '_key_2',
      'item_position',
      'twice',
      withHash('twice'),
      'column',
      nameWithHash('column', ''),
    ]);
  });

  it('are all there for any number of columns of one name', () => {
    const hashed = withHash('a');
    const names = ['a', hashed, `${hashed}_3`, `${hashed}_4`, `${hashed}_5`];
    expect(propertiesOf('events', ['a', 'a', 'a', 'a', 'a']).slice(2)).toEqual(names);
  });

  it('have a hash for names that are the same but for their case, except for the one in lower case', () => {
    expect(propertiesOf('events', ['COLOR', 'Color', 'color', '_Key', 'ÄNDERUNG', 'Änderung']).slice(2)).toEqual([
      withHash('COLOR'),
      withHash('Color'),
      'color',
      withHash('_Key'),
      'ÄNDERUNG',
      withHash('Änderung'),
    ]);
    // The cursor and the keys of a stream keep their names.
    const keys = ['df_server_datetime', 'df_event_log_id', 'df_event_name'];
    const others = keys.map((name) => name.toUpperCase());
    expect(propertiesOf('event_logs', [...others, ...keys]).slice(1)).toEqual([...others.map(withHash), ...keys]);
  });
});

describe('a record', () => {
  const texts = (names: readonly string[]) =>
    streamOf('events', Object.fromEntries(names.map((name) => [name, 'string' as const])));
  const row = (column: string) => `${KEYS},${column}\nx:0,x,value\n`;

  it('names a column as its catalog does: with the hash when only that is configured', async () => {
    const configured = streamOf('events', { [withHash('color')]: 'string' });
    expect((await fixture.write(row('color'), [configured])).data('events')).toEqual([
      { [withHash('color')]: 'value' },
    ]);
    const both = streamOf('events', { color: 'string', [withHash('color')]: 'string' });
    expect((await fixture.write(row('color'), [both])).data('events')).toEqual([{ color: 'value' }]);
    const { streams } = await fixture.write(row('color'), [streamOf('events', { other: 'string' })]);
    expect(streams[0].unsentColumns).toEqual(new Set([...KEYS, 'color']));
  });

  it('names a column as its catalog does when another of the same name came or went later', async () => {
    const write = async (header: string, ...names: string[]) =>
      (await fixture.write(`${KEYS},${header}\nx:0,x,one,two\n`, [texts(names)])).data('events');
    expect(await write('Memo,note', 'memo', withHash('Memo'))).toEqual([{ [withHash('Memo')]: 'one' }]);
    expect(await write('Memo,memo', 'Memo')).toEqual([{ Memo: 'one' }]);
    expect(await write('a,a', 'a', withHash('a'))).toEqual([{ a: 'one', [withHash('a')]: 'two' }]);
  });

  it('leaves out a column whose own name the catalog lacks, though it has one of the same name', async () => {
    const { streams } = await fixture.write(`${KEYS},a,a\nx:0,x,one,two\n`, [texts([...KEYS, 'a'])]);
    expect([...streams[0].unsentColumns]).toEqual([withHash('a')]);
  });

  it('never has one property twice, nor two columns swapped', async () => {
    const write = async (header: string, ...names: string[]) =>
      (await fixture.write(`${header}\none,two,three\n`, [texts(names)])).text;
    const hashed = withHash('Grade');
    expect(await write('grade,Grade,Grade', 'Grade')).toContain('"data":{"Grade":"two"}');
    expect(await write('grade,Grade,Grade', 'Grade', hashed)).toContain(`"data":{"Grade":"two","${hashed}":"three"}`);
    expect(await write('column,,x', ...propertiesOf('events', ['', 'column']))).toContain('"column":"two"');
    const namesLikeHash = ['color', 'Color', withHash('Color').toLowerCase()];
    const properties = propertiesOf('events', namesLikeHash).slice(2);
    expect(await write(namesLikeHash.join(), ...properties)).toContain(`"${properties[1]}":"two"`);
    expect(await write('a,b,_key', '_key', 'a')).toMatch(/"data":\{"_key":"hash:\w+","a":"one"\}/);
  });

  it('has the rescued cells of two columns of one name under the names of their properties', async () => {
    const properties = { a: 'long', [withHash('a')]: 'long', _rescued: 'object' } as const;
    const { data } = await fixture.write(`${KEYS},a,a\nx:0,x,one,two\n`, [streamOf('events', properties)]);
    expect(data('events')).toEqual([
      { a: null, [withHash('a')]: null, _rescued: { a: 'one', [withHash('a')]: 'two' } },
    ]);
  });

  it('lacks no column that its stream has', async () => {
    const { streams } = await fixture.write(`${KEYS},one,two,df_items_a\nx:0,x,1,2,\n`, [
      streamOf('event_items', { df_event_log_id: 'string' }),
      streamOf('event_logs', { df_event_log_id: 'string', two: 'string' }),
    ]);
    expect(streams).toEqual([
      { recordCount: 0, unsentColumns: new Set(['df_event_detail_log_id', 'a']), rescuedCells: new Map() },
      { recordCount: 1, unsentColumns: new Set(['df_event_detail_log_id', 'one']), rescuedCells: new Map() },
    ]);
  });
});
