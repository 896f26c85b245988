import { describe, expect, it } from 'vitest';
import { RecordFixture, streamOf } from '../../support/targets/records.ts';

const fixture = new RecordFixture();

const KEYS = 'df_event_detail_log_id,df_event_log_id';

describe('a column of records', () => {
  it('is named if the catalog lacks it, in whichever part of the export it is', async () => {
    const parts = [`${KEYS},a\nx,x,1\n`, `${KEYS},a,b\ny,y,1,2\n`, `c,${KEYS}\n3,z,z\n`];
    const wanted = streamOf('events', { df_event_detail_log_id: 'string', df_event_log_id: 'string' });
    const { streams } = await fixture.write(parts, [wanted]);
    expect([...streams[0].unsentColumns]).toEqual(['a', 'b', 'c']);
  });

  it('holds lists by the schema of their items', async () => {
    const listOf = (type: unknown) => ({ type: ['array', 'null'], items: type === undefined ? {} : { type } });
    const properties = Object.entries({
      plain: listOf(undefined),
      l: listOf('integer'),
      d: listOf(['null', 'number']),
      b: listOf('boolean'),
      any: { type: ['array', 'null'], items: null },
    });
    const csv = `${KEYS},plain,l,d,b,any\nx,x,"[""1""]",[1],[1.5],[true],"[""2""]"\ny,y,"[""a""]",[1.5],[2],[],[]\n`;
    const { data } = await fixture.write(csv, [{ name: 'events', schemas: new Map(properties) }]);
    expect(data('events')).toEqual([
      { plain: ['1'], l: [1], d: [1.5], b: null, any: ['2'] },
      { plain: ['a'], l: null, d: [2], b: [], any: [] },
    ]);
  });

  it('rescues an instant outside the years that texts can express', async () => {
    const csv = `${KEYS},t\nx,x,9999-12-31T23:00:00+00:00\ny,y,9999-12-31T23:00:00-05:00\n`;
    const { data } = await fixture.write(csv, [streamOf('events', { t: 'instant' })], { timezone: 'UTC' });
    expect(data('events')).toEqual([{ t: '9999-12-31T23:00:00.000Z' }, { t: null }]);
  });

  it('is checked cell by cell only in those parts of an export with cells that do not fit', async () => {
    const [fits, misfits] = [`${KEYS},a\nx,x,1\ny,y,2\n`, `${KEYS},a\nv,v,5x\nw,w,3\n`];
    const { data } = await fixture.write(
      [fits, misfits, fits.replace('1', 'null')],
      [streamOf('events', { a: 'long' })],
    );
    expect(data('events')).toEqual([{ a: 1 }, { a: 2 }, { a: null }, { a: 3 }, {}, { a: 2 }]);
  });
});
