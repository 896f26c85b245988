import { afterAll, describe, expect, it } from 'vitest';
import { RecordBench, streamOf } from '../../support/targets/records.ts';

const bench = new RecordBench();
afterAll(() => bench.close());

const KEYS = 'df_event_detail_log_id,df_event_log_id';

describe('a column of records', () => {
  it.each([
    ['date', '2026-01-02', '2026-01-02'],
    ['long', '7', 7],
    ['double', '1.5', 1.5],
    ['boolean', 'TRUE', true],
    ['datetime', '2026-01-02 03:04:05.000', '2026-01-02T03:04:05.000'],
    ['string[]', '"[""a""]"', ['a']],
  ] as const)('of type %s says nothing for the text null', async (kind, cell, value) => {
    const csv = `${KEYS},a\nx,x,${cell}\ny,y,null\nz,z,"null"\n`;
    const { data } = await bench.write(csv, [streamOf('events', { _key: 'string', a: kind })]);
    expect(data('events')).toEqual([{ _key: 'x', a: value }, { _key: 'y' }, { _key: 'z' }]);
  });

  it('that the catalog lacks is named, in whichever part of the export it is', async () => {
    const parts = [`${KEYS},a\nx,x,1\n`, `${KEYS},a,b\ny,y,1,2\n`, `c,${KEYS}\n3,z,z\n`];
    const wanted = streamOf('events', { df_event_detail_log_id: 'string', df_event_log_id: 'string' });
    const { unsent } = await bench.write(parts, [wanted]);
    expect(unsent.get('events')).toEqual(['a', 'b', 'c']);
  });

  it('of items that would take the name of the position keeps its prefix', async () => {
    const { data } = await bench.write(`${KEYS},df_items_item_position\nx:4,x,first\n`, [
      streamOf('event_items', { item_position: 'long', df_items_item_position: 'string' }),
    ]);
    expect(data('event_items')).toEqual([{ item_position: 4, df_items_item_position: 'first' }]);
  });
});
