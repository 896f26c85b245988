import { readFileSync, rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { DUCKDB, event, setUpErasure } from '../../support/erasure/fixture.ts';
import { ownerText } from '../../support/processes/lock-owner.ts';

const erasure = setUpErasure();
const { at, configure, erase, holding, load, planOf, proofOf, requestedIds, run, runAt, writeList } = erasure;

it('an erasure does what its plan says, asks the service last, and keeps the people away', async () => {
  configure({}, { lock_wait: '0s' });
  const rows = [event('m1'), event('m1', 2), event('m2'), event('m3')];
  await load(rows);
  const list = writeList('requests.csv', 'name,customer\nx,m1\ny,m2\n');
  const words = ['--file', list, '--column', 'customer'];
  const { hash, places } = await planOf(...words);
  expect(places).toMatchObject(Array(3).fill({ people: 2, rows: 3, rows_removed: null }));

  // The hash covers all that is confirmed, and only the whole of it consents.
  const others = [['--max-people', '9'], ['--allow-shared'], ['--purge-only'], ['--by-column', 'df_unified_id']];
  for (const more of others)
    expect((await planOf(...words, ...more, '--execute', '--confirm', hash)).exit, more.join(' ')).toBe(2);
  expect((await planOf(...words, '--execute', '--confirm', hash.slice(0, 12))).exit).toBe(2);
  expect(holding('marked-u-m1')).not.toEqual([]);

  // Nobody is asked for while a place still has the people.
  writeList('lake/_dfinery/lock', ownerText());
  const stuck = await planOf(...words, '--execute', '--confirm', hash);
  expect([stuck.exit, stuck.error]).toEqual([3, expect.stringContaining('is in use')]);
  expect(stuck.places.map(({ rows_removed }) => rows_removed)).toEqual([3, null, 3]);
  expect(requestedIds()).toEqual([]);
  expect(await proofOf('m1')).toEqual([3, expect.stringContaining('open: never asked')]);

  rmSync(at('lake/_dfinery/lock'));
  const { head, ...done } = await planOf(...words, '--execute', '--confirm', hash);
  expect(done).toMatchObject({ exit: 0, done: 2 });
  expect(requestedIds().toSorted()).toEqual(['m1', 'm2']);
  for (const text of ['marked-u-m1', 'marked-row-m1', 'marked-log-m2']) expect(holding(text), text).toEqual([]);
  expect(await proofOf('m1')).toEqual([0, expect.stringMatching(/lake: 2 rows removed\n/)]);
  expect(await proofOf('m3')).toEqual([1, expect.stringContaining('no answer and no removal')]);
  const synced = await load(rows);
  expect(synced.map(({ result }) => JSON.parse(result).suppressed_rows)).toEqual([3, 3, 3]);
  expect(JSON.parse((await runAt('status', DUCKDB, '--json')).result)).toMatchObject({ days: 1, rows: 1 });

  const exitOf = async (...proof: readonly string[]) => (await run('forget', ...proof)).code;
  const ofList = ['--proof-file', list, '--column', 'customer'];
  const ofLedger = ['--verify-ledger', at('ledger')];
  for (const proof of [ofList, ofLedger]) {
    expect(await exitOf(...proof, '--head', head ?? ''), proof[0]).toBe(0);
    expect(await exitOf(...proof, '--head', 'f'.repeat(64)), proof[0]).toBe(1);
  }
  writeList('lake/_dfinery/lock', ownerText());
  expect((await erase('--id', 'm1', '--again')).exit).toBe(3);
  expect(await proofOf('m1')).toEqual([
    3,
    expect.stringMatching(/open: confirmed .*, then purged and not asked again/),
  ]);

  writeList('ledger/ledger.jsonl', readFileSync(at('ledger/ledger.jsonl'), 'utf8').replace('"rows":2', '"rows":1'));
  expect([await exitOf(...ofLedger), await exitOf(...ofList)]).toEqual([1, 1]);
});
