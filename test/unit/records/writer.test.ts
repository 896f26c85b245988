import { describe, expect, it } from 'vitest';
import { quoted } from '../../support/targets/csv.ts';
import { EMITTED_AT, type PropertyKind, RecordFixture, streamOf } from '../../support/targets/records.ts';

const fixture = new RecordFixture();

const ID = 'df_event_detail_log_id';
const KEYS = 'df_event_detail_log_id,df_event_log_id';
const events = (properties: Parameters<typeof streamOf>[1]) => [streamOf('events', properties)];

describe('a record', () => {
  it('is one line with stream, time and the configured properties alone', async () => {
    const { text, streams } = await fixture.write(`${KEYS},a,b\nx:1,x,1,2\n`, events({ _key: 'string', a: 'long' }));
    expect(text).toBe(
      `{"type":"RECORD","record":{"stream":"events","emitted_at":${EMITTED_AT},"data":{"_key":"x:1","a":1}}}\n`,
    );
    const unsentColumns = new Set(['df_event_detail_log_id', 'df_event_log_id', 'b']);
    expect(streams).toEqual([{ recordCount: 1, unsentColumns, rescuedCells: new Map() }]);
  });

  it('has each type as the protocol requires', async () => {
    const csv = [
      `${KEYS},b,l,d,day,t,s,ss,ll,dd`,
      'x,x,TRUE,9007199254740993,1.50,2026-02-28,2026.1.2 3:04,007,"[""a"",null]","[1, 2]","[1.5,2]"',
      'y,y,false,-1,1.0E7,2026-03-01,2026-01-02 03:04:05.678901,null,[],"[null]",null',
    ].join('\n');
    const { text } = await fixture.write(
      csv,
      events({
        b: 'boolean',
        l: 'long',
        d: 'double',
        day: 'date',
        t: 'datetime',
        s: 'string',
        ss: 'string[]',
        ll: 'long[]',
        dd: 'double[]',
      }),
    );
    const [first, second] = text.split('\n').map((line) => line.replace(/.*"data":/, ''));
    expect(first).toBe(
      '{"b":true,"l":9007199254740993,"d":1.50,"day":"2026-02-28","t":"2026-01-02T03:04:00.000","s":"007","ss":["a",null],"ll":[1,2],"dd":[1.5,2]}}}',
    );
    expect(second).toBe(
      '{"b":false,"l":-1,"d":1.0E7,"day":"2026-03-01","t":"2026-01-02T03:04:05.678901","s":"null","ss":[],"ll":[null]}}}',
    );
  });

  it('has an instant when its schema does not say which kind of time it is', async () => {
    const { data } = await fixture.write(
      `${KEYS},t\nx,x,2026-01-02 12:00:00.000\n`,
      [{ name: 'events', schemas: new Map([['t', { type: 'string', format: 'date-time' }]]) }],
      { timezone: 'Asia/Seoul' },
    );
    expect(data('events')).toEqual([{ t: '2026-01-02T03:00:00.000Z' }]);
  });

  it('is a text where the configured type is no column type, and rescued if it does not fit', async () => {
    const properties = {
      o: { type: ['null', 'object'] },
      l: { type: 'array', items: { type: 'object' } },
      any: {},
      list: { type: 'array' },
      _rescued: { type: 'object' },
    };
    const csv = `${KEYS},o,l,any,list\nx,x,"{""a"":1}","[{}]",7,"[""a""]"\ny,y,null,,,\n`;
    const schemas = new Map(Object.entries(properties));
    const { text, streams } = await fixture.write(csv, [{ name: 'events', schemas }]);
    const [first, second] = text.split('\n').map((line) => JSON.parse(line || '{}').record);
    expect(first.data).toEqual({
      o: '{"a":1}',
      l: null,
      any: '7',
      list: ['a'],
      _rescued: { l: '[{}]' },
    });
    expect(first.meta.changes).toHaveLength(1);
    expect(second.data).toEqual({ o: 'null' });
    expect(streams[0].rescuedCells.get('l')).toBe(1);
  });

  it('holds any text: quotes, newlines, control characters, other scripts, names of objects', async () => {
    const text = 'two\nlines, "quoted" \\ \u0000\u001f 안녕 \u{1f600} __proto__';
    const csv = `df_event_detail_log_id,__proto__,"na""me, 한"\nx,"${text.replaceAll('"', '""')}",plain\n`;
    const { data } = await fixture.write(csv, [
      {
        name: 'events',
        schemas: new Map<string, unknown>([
          ['__proto__', { type: ['string', 'null'] }],
          ['na"me, 한', { type: 'string' }],
        ]),
      },
    ]);
    expect(Object.entries(data('events')[0])).toEqual([
      ['__proto__', text],
      ['na"me, 한', 'plain'],
    ]);
  });

  it('is one for each row, event and item, whole, also of a file of many pieces', async () => {
    const memo = (i: number) => `a "b"\n${'x'.repeat(i % 90)}`;
    const rows = Array.from(
      { length: 30_000 },
      (_, i) => `e${i % 20_000}:${i % 7},e${i % 9000},${i},${quoted(memo(i))},p${i % 3}`,
    );
    const csv = `df_event_detail_log_id,df_event_log_id,n,memo,df_items_x\n${rows.join('\n')}\n`;
    const { data } = await fixture.write(csv, [
      streamOf('events', { _key: 'string', n: 'long', memo: 'string' }),
      streamOf('event_logs', { df_event_log_id: 'string', n: 'long' }),
      streamOf('event_items', { _key: 'string', x: 'string', item_position: 'long' }),
    ]);
    expect(data('events').map(({ n, memo }) => [n, memo])).toEqual(rows.map((_, i) => [i, memo(i)]));
    expect(new Set(data('events').map(({ _key }) => _key)).size).toBe(rows.length);
    expect(data('event_logs')).toHaveLength(9_000);
    expect(data('event_items').map(({ x }) => x)).toEqual(rows.map((_, i) => `p${i % 3}`));
  });

  it('has the columns of its own part of an export', async () => {
    const parts = ['df_event_detail_log_id,a\nx,1\n', 'df_event_detail_log_id,b\ny,2\n', 'a,b\n3,4\n'];
    const { data } = await fixture.write(parts, events({ a: 'long' }));
    expect(data('events')).toEqual([{ a: 1 }, {}, { a: 3 }]);
  });

  it('has one name for the event name', async () => {
    const schema = events({ df_event_name: 'string', event_name: 'string' });
    const one = await fixture.write('df_event_detail_log_id,event_name\nx,login\n', schema);
    expect(one.data('events')).toEqual([{ df_event_name: 'login' }]);
    const both = await fixture.write('df_event_detail_log_id,df_event_name,event_name\nx,login,mine\n', schema);
    expect(both.data('events')).toEqual([{ df_event_name: 'login', event_name: 'mine' }]);
  });
});

describe('a cell that does not fit', () => {
  const csv = `${KEYS},df_items_n,a,b\nx,x,5x,"say ""no""",2\ny,y,,3,\n`;

  it('is null, in _rescued by its column, and named in meta', async () => {
    const { lines, streams } = await fixture.write(
      csv,
      events({ _key: 'string', df_items_n: 'long', a: 'long', b: 'long', _rescued: 'object' }),
    );
    expect(lines[0].record.data).toEqual({
      _key: 'x',
      df_items_n: null,
      a: null,
      b: 2,
      _rescued: { df_items_n: '5x', a: 'say "no"' },
    });
    const change = { change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' };
    expect(lines[0].record.meta).toEqual({
      changes: [
        { field: 'df_items_n', ...change },
        { field: 'a', ...change },
      ],
    });
    expect(lines[1].record).not.toHaveProperty('meta');
    expect(streams[0].rescuedCells).toEqual(
      new Map([
        ['df_items_n', 1],
        ['a', 1],
      ]),
    );
  });

  it('is not in _rescued unless that is configured, and counts for each stream', async () => {
    const { lines, streams } = await fixture.write(csv, [
      streamOf('events', { df_items_n: 'long' }),
      streamOf('event_items', { n: 'long', _rescued: 'object' }),
    ]);
    expect(lines[0].record.data).toEqual({ df_items_n: null });
    expect(lines[1].record).toMatchObject({
      stream: 'event_items',
      data: { n: null, _rescued: { df_items_n: '5x' } },
      meta: { changes: [{ field: 'n' }] },
    });
    const counts = [new Map([['df_items_n', 1]]), new Map([['n', 1]])];
    expect(streams.map(({ rescuedCells }) => rescuedCells)).toEqual(counts);
  });
});

const [LOCAL, SKIPPED] = ['2026-01-02T03:04:00.000', '2026-03-29T02:30:00.000'];
it.each<['datetime' | 'instant', string | undefined, (string | null)[]]>([
  ['datetime', undefined, [LOCAL, null, SKIPPED]],
  ['datetime', 'Europe/Berlin', [LOCAL, null, SKIPPED]],
  // A skipped local time moves forward.
  ['instant', 'Europe/Berlin', ['2026-01-02T02:04:00.000Z', '2026-01-01T18:04:05.000Z', '2026-03-29T01:30:00.000Z']],
])('times of a catalog with a %s, zone %s', async (kind, timezone, expected) => {
  const csv = 'df_event_detail_log_id,t\nx,2026.1.2 3:04\ny,2026-01-02T03:04:05+09:00\nz,2026-03-29 02:30:00\n';
  const { data } = await fixture.write(csv, events({ t: kind }), { timezone });
  expect(data('events').map(({ t }) => t)).toEqual(expected);
});

it('event_items has a record for each item: system columns, item columns without prefix, the position', async () => {
  const csv = [
    'df_event_detail_log_id,df_event_log_id,df_unified_id,custom,df_items_df_price,df_items_,df_items_tags',
    'e:0,e,u,c,1.5,bare,null',
    'e:12,e,u,c,,,"[""t""]"',
    'f,f,u,c,,bare,null',
  ].join('\n');
  const { data } = await fixture.write(csv, [
    streamOf('event_items', {
      _key: 'string',
      df_unified_id: 'string',
      custom: 'string',
      df_items_: 'string',
      df_price: 'double',
      tags: 'string[]',
      item_position: 'long',
    }),
  ]);
  expect(data('event_items')).toEqual([
    { _key: 'e:0', df_unified_id: 'u', df_price: 1.5, item_position: 0 },
    { _key: 'e:12', df_unified_id: 'u', tags: ['t'], item_position: 12 },
  ]);
});

const NUMBERED = Array.from({ length: 2_000 }, (_, i) => `n${i}`);
const LARGE = 300_000;
const ESCAPED = '\u0001';
const all = (kind: PropertyKind) => Object.fromEntries(NUMBERED.map((name) => [name, kind]));
const texts = (values: readonly string[]) => values.map(quoted).join(',');

it.each<[string, readonly string[], readonly string[], Readonly<Record<string, PropertyKind>>]>([
  ['an id that is escaped wholly', [ID], [ESCAPED.repeat(LARGE)], { _key: 'string', [ID]: 'string' }],
  ['a misfit that is escaped wholly', ['n'], [ESCAPED.repeat(LARGE)], { n: 'long', _rescued: 'object' }],
  ['times that become longer', NUMBERED, NUMBERED.map(() => '2026.1.2 3:04'), all('instant')],
])('a record much longer than its row is written whole: %s', async (_, header, cells, properties) => {
  const csv = `${texts(header)}\n${`${texts(cells)}\n`.repeat(20)}`;
  const { lines } = await fixture.write(csv, events(properties), { timezone: 'Asia/Seoul' });
  expect(lines).toHaveLength(20);
  expect(lines.at(-1)?.record.meta).toEqual(lines[0].record.meta);
  expect(Object.keys(lines[0].record.data).length).toBe(Object.keys(properties).length);
});

it('a run that is stopped writes no more records', async () => {
  const stop = new AbortController();
  let pieces = 0;
  const onBlock = () => {
    pieces++;
    stop.abort(new Error('stopped'));
  };
  const csv = `${KEYS},note\n${`x,x,${'n'.repeat(1_000)}\n`.repeat(2_500)}`;
  const stopped = fixture.write(csv, events({ note: 'string' }), { signal: stop.signal, onBlock });
  await expect(stopped).rejects.toThrow();
  expect(pieces).toBe(1);
});
