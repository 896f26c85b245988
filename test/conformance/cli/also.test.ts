import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CliFixture, daysBack, summaryIn } from '../../support/processes/cli-child.ts';
import { query } from '../../support/targets/query.ts';

let fixture: CliFixture;
beforeEach(async () => {
  fixture = await CliFixture.start();
});
afterEach(() => fixture.close());

const at = (name: string) => join(fixture.dir, name);
const exports = () => fixture.sim.requests().filter(({ operation }) => operation === 'export').length;
const rowsIn = async (folder: string) => {
  const rows = await query(':memory:', `SELECT count(*) AS n FROM read_parquet('${folder}/events/*/*.parquet')`);
  return Number(rows[0]?.n);
};
const expected = () => fixture.sim.countRows({ from: daysBack(7), to: daysBack(2) });

describe('one download for several targets', () => {
  it('serves each target with all rows and a cursor of its own', async () => {
    const also = ['--also', 'parquet', at('lake'), '--also', 'delta', at('delta')];
    const ended = await fixture.sync({}, also);
    expect(ended.code, ended.stderr).toBe(0);
    expect(exports()).toBe(6);
    expect(summaryIn(ended)).toMatchObject({ rows: expected(), windows: 6, exports: 6, exit: 0, error: null });
    const own = { rows: expected(), windows: 6, next_from_date: daysBack(1), exit: 0, error: null };
    expect(summaryIn(ended).also).toEqual([
      { target: 'parquet', place: at('lake'), ...own },
      { target: 'delta', place: at('delta'), ...own },
    ]);
    expect(await fixture.rows()).toBe(expected());
    expect(await rowsIn(at('lake'))).toBe(expected());
    expect(await fixture.run(['verify', 'delta', at('delta')])).toMatchObject({ code: 0 });
    expect(fixture.spooled()).toEqual([]);
  });

  it('serves days that are not over, which a later command requests again', async () => {
    const config = { start_date: daysBack(1), end_date: daysBack(-1) };
    const first = await fixture.sync(config, ['--also', 'parquet', at('lake')]);
    expect(first.code, first.stderr).toBe(0);
    const asked = exports();
    expect(fixture.spooled()).toEqual([]);
    const alone = await CliFixture.start();
    try {
      await alone.sync(config);
      const once = alone.sim.requests().filter(({ operation }) => operation === 'export').length;
      expect(asked).toBe(once);
    } finally {
      await alone.close();
    }
    await fixture.sync(config, ['--also', 'parquet', at('lake')]);
    expect(exports()).toBeGreaterThan(asked);
  });

  it('gives a target that is behind only the days that it lacks', async () => {
    expect((await fixture.sync({ end_date: daysBack(4), lookback_days: 0 })).code).toBe(0);
    expect(exports()).toBe(4);
    const ended = await fixture.sync({ lookback_days: 0 }, ['--also', 'parquet', at('lake')]);
    expect(ended.code, ended.stderr).toBe(0);
    expect(exports()).toBe(10);
    expect(summaryIn(ended)).toMatchObject({ windows: 2, exports: 6, also: [{ windows: 6, rows: expected() }] });
    expect(fixture.spooled()).toEqual([]);
  });

  it('names a target that fails, goes on with the others, and exits with the worst code', async () => {
    mkdirSync(join(at('foreign'), 'events'), { recursive: true });
    writeFileSync(join(at('foreign'), 'events', 'x.parquet'), 'theirs');
    const also = ['--also', 'parquet', at('foreign'), '--also', 'parquet', at('lake')];
    const ended = await fixture.sync({}, also);
    expect(ended.code, ended.stderr).toBe(2);
    expect(summaryIn(ended)).toMatchObject({
      rows: expected(),
      exit: 2,
      error: expect.stringContaining(`parquet ${at('foreign')}: `),
      also: [
        { place: at('foreign'), rows: 0, exit: 2, error: expect.stringContaining('did not write') },
        { place: at('lake'), rows: expected(), exit: 0, error: null },
      ],
    });
    expect(ended.stderr).toContain(at('foreign'));
    expect(exports()).toBe(6);
    expect(await rowsIn(at('lake'))).toBe(expected());
  });

  it.each([
    ['a token that is not valid', { faults: [{ kind: 'status', status: 401 }] }, 2, 1],
    ['days that are gone', { days: { history_days: 5 } }, 4, 4],
    ['spans that are too large', { too_big: { longest_days: 1, status: 500 } }, 0, 6],
  ])('sends an export that the service refuses once for all targets: %s', async (_, scenario, code, least) => {
    const also = ['--also', 'parquet', at('lake'), '--also', 'delta', at('delta')];
    const config = { window_days: 2, to_date_inclusive: 'true' };
    const asked: number[] = [];
    for (const more of [[], also]) {
      const own = await CliFixture.start(scenario);
      try {
        const ended = await own.sync(config, more);
        expect(ended.code, ended.stderr).toBe(code);
        asked.push(own.sim.requests().filter(({ operation }) => operation === 'export').length);
      } finally {
        await own.close();
      }
    }
    expect(asked[0]).toBeGreaterThanOrEqual(least);
    expect(asked[1]).toBe(asked[0]);
  });

  it('asks again for another target where the failure may have passed', async () => {
    const own = await CliFixture.start({
      faults: [{ kind: 'status', status: 503, when: { day: daysBack(7), times: 5 } }],
    });
    try {
      const ended = await own.sync({ start_date: daysBack(7), end_date: daysBack(6) }, [
        '--also',
        'parquet',
        at('lake'),
      ]);
      expect(ended.code, ended.stderr).toBe(3);
      const rows = own.sim.countRows({ from: daysBack(7), to: daysBack(6) });
      expect(summaryIn(ended)).toMatchObject({ rows: 0, exit: 3, also: [{ rows, exit: 0 }] });
    } finally {
      await own.close();
    }
  });

  it('reports the error of the first target when another target has a worse one', async () => {
    fixture.sim.setScenario({ days: { history_days: 5 } });
    mkdirSync(join(at('foreign'), 'events'), { recursive: true });
    writeFileSync(join(at('foreign'), 'events', 'x.parquet'), 'not ours');
    const ended = await fixture.sync({}, ['--also', 'parquet', at('foreign')]);
    expect(ended.code, ended.stderr).toBe(2);
    const error = /^parquet .* did not write.* duckdb .* failed too \(exit 4\): .* can no longer be exported/;
    expect(summaryIn(ended).error).toMatch(error);
    expect(ended.stderr).toContain(`Nothing was committed to ${fixture.file}.`);
  });

  it('goes on with the other targets when the first fails, and reports its failure', async () => {
    writeFileSync(fixture.file, 'no database');
    const ended = await fixture.sync({}, ['--also', 'parquet', at('lake')]);
    expect(ended.code, ended.stderr).toBe(2);
    expect(summaryIn(ended)).toMatchObject({ rows: 0, windows: 0, exit: 2, also: [{ rows: expected(), exit: 0 }] });
    expect(await rowsIn(at('lake'))).toBe(expected());
  });

  it.each(['cursor', 'days'])(
    'keeps the downloads that a failed target lacks for the next command, by %s',
    async (by) => {
      writeFileSync(at('lake'), 'no folder');
      const days = by === 'days' ? ['--from', daysBack(7), '--to', daysBack(2)] : [];
      const more = ['--also', 'parquet', at('lake'), '--also', 'delta', at('delta'), ...days];
      expect((await fixture.sync({ lookback_days: 0 }, more)).code).toBe(2);
      rmSync(at('lake'));
      const ended = await fixture.sync({ lookback_days: 0 }, more);
      expect(ended.code, ended.stderr).toBe(0);
      // Named days are asked for again by those that have them, of the last of them anew.
      expect(exports()).toBe(by === 'days' ? 7 : 6);
      expect(await rowsIn(at('lake'))).toBe(expected());
      expect(ended.stderr).toContain(`Loading parquet ${at('lake')}.`);
      expect(fixture.spooled()).toEqual([]);
    },
  );

  it('is completed by the same command after a kill between two targets', async () => {
    const also = ['--also', 'parquet', at('lake'), '--log-level', 'debug'];
    const child = fixture.start(fixture.syncArgs({}, also));
    await child.says('Window .* is committed', 8);
    child.process.kill('SIGKILL');
    await child.ended;
    const ended = await fixture.sync({ lookback_days: 0 }, ['--also', 'parquet', at('lake')]);
    expect(ended.code, ended.stderr).toBe(0);
    expect(await fixture.rows()).toBe(expected());
    expect(await rowsIn(at('lake'))).toBe(expected());
    expect(exports(), 'a crash spends no export twice').toBe(6);
    expect(fixture.spooled()).toEqual([]);
  });

  it.each([
    [['--also', 'nowhere', 'x'], /--also names "nowhere", wanted/],
    [['--also', 'arrow', '-'], /stdout/],
  ])('refuses %j', async (more, what) => {
    const ended = await fixture.sync({}, more);
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringMatching(what)]);
  });

  it('refuses two targets with the same location', async () => {
    const ended = await fixture.sync({}, ['--also', 'duckdb', fixture.file]);
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining('is given twice')]);
    expect(exports()).toBe(0);
  });
});
