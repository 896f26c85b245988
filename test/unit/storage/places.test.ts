import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { filesBelow, Place } from '../../support/targets/place.ts';

// What a user notices first of a folder and of a Delta table. The tests of test/unit/targets try each in all its cases.

const [D1, D2] = ['2026-01-01', '2026-01-02'] as const;
const rows = [{ id: 'a', member: 'SECRET', df_unified_id: 'u' }];

it('a folder of Parquet files names those of others, and what a purge could not read', async () => {
  const place = new Place('parquet');
  await place.load([[place.of(D1, rows), place.of(D2, rows)]]);
  await expect(place.open({ timezone: 'Asia/Seoul' })).rejects.toThrow('timezone is Asia/Seoul');
  const [first, second] = place.files().filter((path) => path.endsWith('.parquet'));
  writeFileSync(`${first}.parquet`, '');
  const ofOthers = { check: 'files', message: expect.stringContaining('readers see it') };
  expect((await place.verify()).differences).toMatchObject([ofOthers]);
  rmSync(`${first}.parquet`);
  writeFileSync(second, 'damaged');
  expect(await place.purge(['SECRET'])).toMatchObject({
    rowsRemoved: 1,
    unreached: [expect.stringContaining('People may still be there')],
  });
});

it('a Delta table keeps files for its readers, then removes them, and refuses a log that is not whole', async () => {
  const place = new Place('delta');
  const log = (version: number) => join(place.root, `events/_delta_log/${String(version).padStart(20, '0')}.json`);
  const dataFiles = () => filesBelow(place.root).filter((path) => /\/part-[^/]*$/.test(path)).length;
  for (const n of ['1', '2']) await place.load([[place.of(D1, [...rows, { id: 'b', n }])]]);
  expect(readFileSync(log(1), 'utf8')).toContain('"stats":"{\\"numRecords\\":2}"');
  expect(dataFiles()).toBe(2);
  await expect(place.open({ timezone: 'Asia/Seoul' })).rejects.toThrow('timezone is Asia/Seoul');
  const sink = await place.open({ retentionMs: 0 });
  await sink.commit([place.of(D1, rows)], place.commitInfo(D1));
  // A file expires once it has left the table for longer than the retention.
  await delay(10);
  await sink.close();
  expect(dataFiles()).toBe(1);

  const refusedWithout = async (version: number, text: string, why: string) => {
    const entry = readFileSync(log(version), 'utf8');
    if (text === '') rmSync(log(version));
    else writeFileSync(log(version), entry.replace(text, text.replace('3', '1')));
    await expect(place.open()).rejects.toThrow(why);
    writeFileSync(log(version), entry);
  };
  await refusedWithout(0, '"minReaderVersion":3', 'Delta protocol');
  await refusedWithout(1, '', 'version 1 is missing');
  await refusedWithout(2, '', 'if this one is an older copy');
});
