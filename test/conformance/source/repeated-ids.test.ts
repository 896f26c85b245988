import { afterEach, describe, expect, it } from 'vitest';
import { RepeatedIds, type WindowIds } from '../../../src/airbyte/source/repeated-ids.ts';
import { IdHashes } from '../../../src/cells/columns/id-hashes.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';

let fixture: SourceFixture;
afterEach(() => fixture?.close());

const warnings = async (scenario: unknown, config = {}) => {
  await fixture?.close();
  fixture = await SourceFixture.start(scenario);
  const output = await fixture.read(await fixture.catalog(), undefined, config);
  expect(output.code).toBe(0);
  return output.of('LOG').filter(({ log }) => log?.message.includes('df_event_detail_log_id'));
};

describe('an id that repeats on another day', () => {
  it('is warned about once a read, without printing it', async () => {
    const reported = await warnings({ ids: { reused_share: 0.2 } });
    expect(reported).toHaveLength(1);
    expect(reported[0].log).toMatchObject({
      level: 'WARN',
      message: expect.stringMatching(/2026-01-1\d .* 2026-01-1\d or before/),
    });
    expect(reported[0].log?.message).not.toMatch(/202601\d\d-/);
  });

  it('is not warned about for distinct ids, or when windows share a day because nothing is proved', async () => {
    expect(await warnings({})).toEqual([]);
    expect(await warnings({ ids: { repeat_share: 0.3, duplicate_share: 0.1 } })).toEqual([]);
    const oneRow = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`2026-01-${15 + i}`, 1]));
    expect(await warnings({ rows: { by_day: oneRow } }, { window_days: 2 })).toEqual([]);
    expect(await warnings({ days: { single_days: 'error' } })).toEqual([]);
  });
});

describe('samples of ids', () => {
  const windowOf = (day: string, ids: readonly string[]): WindowIds => {
    const hashes = new IdHashes();
    for (const id of ids) hashes.add(Buffer.from(id), 0, Buffer.byteLength(id));
    const sample = hashes.finish(1_000)?.sample;
    return { receipt: { from: day, to: day }, state: {}, files: [sample === undefined ? {} : { idSample: sample }] };
  };
  const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

  it('find the ids that large windows share, and no others', () => {
    const seen = new RepeatedIds();
    expect(seen.add(windowOf('2026-01-01', ids('a', 50_000)))).toBeUndefined();
    expect(seen.add(windowOf('2026-01-02', ids('b', 70_000)))).toBeUndefined();
    expect(seen.add(windowOf('2026-01-03', [...ids('c', 500), ...ids('a', 3_000)]))).toBe('2026-01-01');
  });

  it('are bounded in memory', () => {
    const seen = new RepeatedIds();
    for (let day = 10; day < 99; day++) seen.add(windowOf(`2026-01-${day}`, ids(`d${day}`, 9_000)));
    expect(seen.add(windowOf('2026-02-01', ids('d20', 9_000)))).toBe('2026-01-20');
  });
});
