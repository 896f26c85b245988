import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { quoted } from '../../support/targets/csv.ts';
import { RecordFixture, streamOf } from '../../support/targets/records.ts';

const fixture = new RecordFixture();

const csvOf = (header: readonly string[], rows: readonly (readonly string[])[]) =>
  `${[header, ...rows].map((row) => row.map(quoted).join(',')).join('\n')}\n`;

async function keysOf(csv: string): Promise<unknown[]> {
  const { data } = await fixture.write(csv, [streamOf('events', { _key: 'string' })]);
  return data('events').map(({ _key }) => _key);
}

const ID = 'df_event_detail_log_id';
const LOG = 'df_event_log_id';

const cases: [id: string, log: string, position: number | undefined][] = [
  ['x:0', 'x', 0],
  ['x:007', 'x', 7],
  ['x:0000000000000000000000005', 'x', 5],
  ['x:123456789012345678', 'x', Number('123456789012345678')],
  ['x:1234567890123456789', 'x', undefined],
  ['x:', 'x', undefined],
  ['x#1', 'x', undefined],
  ['x:1a', 'x', undefined],
  ['x:-1', 'x', undefined],
  ['y:1', 'x', undefined],
  ['xy:1', 'xz', undefined],
  ['x:1', 'x:1:2', undefined],
  ['x:1', '', undefined],
  ['', 'x', undefined],
  ['a:b:3', 'a:b', 3],
  ['say "no":4', 'say "no"', 4],
  ['한글:5', '한글', 5],
];

it.each(cases)('the position of an item with id %s and event %s is %s', async (id, log, position) => {
  const stream = streamOf('event_items', { df_items_a: 'string', a: 'string', item_position: 'long' });
  const { data } = await fixture.write(csvOf([ID, LOG, 'df_items_a'], [[id, log, 'v']]), [stream]);
  expect(data('event_items')).toEqual([position === undefined ? { a: 'v' } : { a: 'v', item_position: position }]);
});

describe('the row that represents an event', () => {
  const chosen = async (...rows: [id: string, log: string][]) => {
    const lines = rows.map(([id, log], i) => [id, log, String(i)]);
    const { data } = await fixture.write(csvOf([ID, LOG, 'v'], lines), [streamOf('event_logs', { v: 'string' })]);
    return data('event_logs').map(({ v }) => Number(v));
  };

  it('is the one without a position, then the one with the lowest, then the first', async () => {
    expect(await chosen(['e:0', 'e'], ['e', 'e'], ['e:1', 'e'])).toEqual([1]);
    expect(await chosen(['e:3', 'e'], ['e:12', 'e'], ['e:2', 'e'])).toEqual([2]);
    expect(await chosen(['e:1', 'e'], ['e:01', 'e'])).toEqual([0]);
    expect(await chosen(['e:65000', 'e'], ['e:64999', 'e'])).toEqual([1]);
    expect(await chosen(['e:123456789012345678', 'e'], ['e:3', 'e'])).toEqual([1]);
    expect(await chosen(['e:3', 'e'], ['e:123456789012345678', 'e'])).toEqual([0]);
  });

  it('is each row without an event id, also when two are equal', async () => {
    expect(await chosen(['a', ''], ['b', ''], ['e:1', 'e'], ['a', ''])).toEqual([0, 1, 2, 3]);
  });

  it('has its key as the id of its event if it has none, where the catalog has the property', async () => {
    const written = async (properties: Parameters<typeof streamOf>[1]) => {
      const csv = `${ID},${LOG},df_items_v\na,,1\n,,2\n,,2\n`;
      return (await fixture.write(csv, [streamOf('event_logs', properties)])).data('event_logs');
    };
    expect(await written({ df_items_v: 'string', [LOG]: 'string' })).toEqual([
      { [LOG]: 'a' },
      { [LOG]: expect.stringMatching(/^hash:[0-9a-f]{64}$/) },
      { [LOG]: expect.stringMatching(/^hash:[0-9a-f]{64}#2$/) },
    ]);
    expect(await written({ df_items_v: 'string' })).toEqual([{}, {}, {}]);
  });

  it('is found for events of every id', async () => {
    const rows = Array.from({ length: 4_000 }, (_, i): [string, string] => [`e${i % 2_000}:${i}`, `e${i % 2_000}`]);
    expect(await chosen(...rows)).toEqual(Array.from({ length: 2_000 }, (_, i) => i));
    const logs = ['e', '"e"', 'e"', 'E', 'e ', 'ee', '한', '글'];
    expect(await chosen(...logs.map((log): [string, string] => [`${log}:1`, log]))).toEqual(logs.map((_, i) => i));
  });
});

describe('the key of a row', () => {
  it('is its id, with a number for the second and later rows of the id', async () => {
    const ids = ['a', 'b', 'a', 'say "a"', 'a', 'say "a"', 'line\nend', '한'];
    const rows = ids.map((id) => [id]);
    expect(await keysOf(csvOf([ID], rows))).toEqual([
      'a',
      'b',
      'a#2',
      'say "a"',
      'a#3',
      'say "a"#2',
      'line\nend',
      '한',
    ]);
  });

  it('is numbered over all parts of an export', async () => {
    const parts = [`${ID}\na\n`, `${ID}\na\nb\n`];
    const { data } = await fixture.write(parts, [streamOf('events', { _key: 'string' })]);
    expect(data('events').map(({ _key }) => _key)).toEqual(['a', 'a#2', 'b']);
  });

  it('is a hash of the filled cells in the byte order of their names, when there is no id or no id column', async () => {
    const digest = (text: string) => `hash:${createHash('sha256').update(text).digest('hex')}`;
    const header = ['b', 'Z', '한', 'event_name', LOG, 'note'];
    const row = ['1', 'say "a"', '안녕', 'login', '', 'null'];
    expect(await keysOf(csvOf(header, [row]))).toEqual([
      digest('1:Z7:say "a"1:b1:113:df_event_name5:login4:note4:null3:한6:안녕'),
    ]);
    const long = `say "${'x'.repeat(2_000)}"`;
    expect(await keysOf(csvOf(['a'], [[long], ['b'], [long]]))).toEqual([
      digest(`1:a${long.length}:${long}`),
      digest('1:a1:b'),
      `${digest(`1:a${long.length}:${long}`)}#2`,
    ]);
    const keys = [digest('1:b1:x'), digest('1:a1:x'), `${digest('1:b1:x')}#2`];
    expect(await keysOf('a,b\n,x\nx,\n,x\n')).toEqual(keys);
    expect(await keysOf(`a,${ID},${LOG}\nx,,e\nx,own,e\n`)).toEqual([digest(`1:a1:x15:${LOG}1:e`), 'own']);
  });
});
