import fs, { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { arrow } from '../../../src/targets/targets.ts';
import { expectMode } from '../../support/modes.ts';
import { systemError, withCall } from '../../support/system-calls.ts';
import { ArrowFixture } from '../../support/targets/arrow.ts';
import { filesBelow } from '../../support/targets/place.ts';

const [D1, D2, D3] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;

describe('an Arrow stream', () => {
  let fixture: ArrowFixture;
  beforeEach(() => {
    fixture = new ArrowFixture();
  });

  const keys = () => fixture.rows().map(({ _key }) => _key);

  it('has the rows of all days in the order of the export, with the day of each', async () => {
    const done = await fixture.write([
      fixture.of(D1, [
        { id: 'b', n: '1' },
        { id: 'a', n: '2' },
      ]),
      fixture.of(D2, []),
      fixture.of(D3, [{ id: 'c', n: '3' }]),
    ]);
    expect(done.rowsWritten).toBe(3);
    const table = fixture.table();
    expect(table.schema.fields.slice(0, 3).map(({ name }) => name)).toEqual(['_key', 'event_date', '_rescued']);
    expect(keys()).toEqual(['b', 'a', 'c']);
    const days = [...(table.getChild('event_date') ?? [])].map((ms) => new Date(Number(ms)).toISOString().slice(0, 10));
    expect(days).toEqual([D1, D1, D3]);
  });

  it('has the columns and types of all days', async () => {
    await fixture.write([fixture.of(D1, [{ id: 'a', n: '5' }]), fixture.of(D2, [{ id: 'b', n: '1.5', later: 'x' }])]);
    expect(fixture.rows()).toMatchObject([
      { _key: 'a', n: 5, later: null },
      { _key: 'b', n: 1.5, later: 'x' },
    ]);
  });

  it('with a given schema is sent while days arrive; what does not fit is in _rescued', async () => {
    const pinnedTypes = new Map([
      ['n', 'long' as const],
      ['gone', 'string' as const],
    ]);
    const days = (async function* () {
      yield fixture.of(D1, [{ id: 'a', n: '5' }]);
      yield fixture.of(D2, [{ id: 'b', n: 'x', other: '7' }]);
    })();
    // The type of a column does not add it to the stream.
    const sent = await fixture.write(days, { pinnedTypes, columnTypes: new Map([['other', 'long']]) });
    expect(sent.daysWritten).toEqual([D1, D2]);
    expect([...sent.rescuedCells.keys()]).toEqual(['n', 'other']);
    const [first, second] = fixture.rows();
    expect(first).toMatchObject({ n: '5', gone: null, _rescued: null });
    expect(JSON.parse(String(second?._rescued))).toEqual({ n: 'x', other: '7' });
    expect(first).not.toHaveProperty('other');
  });

  it('with a given schema has a custom event_name, too, if the schema has both names', async () => {
    const pinnedTypes = new Map(['df_event_name', 'event_name'].map((source) => [source, 'string' as const]));
    await fixture.write([fixture.of(D1, [{ id: 'a', event_name: 'x' }])], { pinnedTypes });
    expect(fixture.rows()).toMatchObject([{ _key: 'a', event_name: 'x', _rescued: null }]);
  });

  it('has a row that two neighbouring exports share once', async () => {
    const [a, b, c] = [{ id: 'a' }, { id: 'b' }, { id: 'c' }];
    await fixture.write([fixture.shared(D1, [a, b]), fixture.shared(D2, [b, c]), fixture.shared(D3, [c])]);
    expect(keys()).toEqual(['a', 'b', 'c']);
  });

  it('has a row of two days that are no neighbours twice, also if the day between has no rows', async () => {
    await fixture.write([fixture.shared(D1, [{ id: 'a' }]), fixture.shared(D2, []), fixture.shared(D3, [{ id: 'a' }])]);
    expect(keys()).toEqual(['a', 'a']);
  });

  it('keeps no rows of sent days on disk, also of days that may share rows', async () => {
    const counts: number[] = [];
    const days = (async function* () {
      for (let i = 1; i < 9; i++) {
        yield fixture.shared(`2026-01-0${i}`, [{ id: `a${i}` }]);
        counts.push(filesBelow(fixture.dir).filter((path) => path.endsWith('.parquet')).length);
      }
    })();
    await fixture.write(days, { pinnedTypes: new Map() });
    expect(Math.max(...counts)).toBeLessThan(4);
  });

  it('is for its owner alone while its file is not complete, and leaves no such file after a failure', async () => {
    const folder = dirname(fixture.out);
    const unfinishedFiles = () => readdirSync(folder).filter((name) => name.includes('events.arrows'));
    async function* days() {
      expect(unfinishedFiles()).toHaveLength(1);
      for (const name of unfinishedFiles()) expectMode(join(folder, name), 0o600);
      yield fixture.of(D1, [{ id: 'a' }]);
      throw new Error('no second day');
    }
    await expect(fixture.write(days())).rejects.toThrow('no second day');
    expect(unfinishedFiles()).toEqual([]);
  });

  it('tells a failing spool folder from its own file', async () => {
    const failRename = () => Promise.reject(systemError('EIO', 'rename'));
    const written = withCall(fs.promises, 'rename', failRename, () => fixture.write([fixture.of(D1, [{ id: 'a' }])]));
    await expect(written).rejects.toThrow(/^The spool folder .+ failed \(EIO\)/);
  });

  it('is all or nothing, except on stdout with a given schema', async () => {
    const open = (address: string, pinnedTypes?: ReadonlyMap<string, 'long'>) =>
      arrow.open(fixture.options({ address, pinnedTypes }));
    expect((await open('x.arrows', new Map())).isAllOrNothing).toBe(true);
    expect((await open('-')).isAllOrNothing).toBe(true);
    expect((await open('-', new Map())).isAllOrNothing).toBe(false);
  });
});
