import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { HASH_KEY, hmac, LISTS, PrivacyFixture, person } from '../../support/privacy.ts';
import { SERVICE_ID, TOKENS } from '../../support/service/simulator.ts';

let fixture: PrivacyFixture;
beforeEach(async () => {
  fixture = await PrivacyFixture.start();
});
afterEach(async () => {
  await fixture.close();
});

const SUPPRESSION_KEY = 'a suppression key of 32 characters';
const ENV = { DFINERY_HASH_KEY: HASH_KEY, DFINERY_SUPPRESSION_KEY: SUPPRESSION_KEY };
/** Each target and a place of it. */
const TARGETS = STATEFUL_TARGETS.map(({ name }) => name).map(
  (name) => [name, name === 'duckdb' ? 'events.duckdb' : name] as const,
);

/** Plans, confirms and purges the second person of a target by the mail address. */
async function forget(target: readonly [string, string]) {
  const erasure = { import_token: TOKENS.import, ledger_dir: 'ledger' };
  const config = {
    base_url: fixture.url,
    service_id: SERVICE_ID,
    suppression_file: 'suppressed.jsonl',
    spool_dir: 'spool',
    erasure,
  };
  writeFileSync(fixture.at('forget.json'), JSON.stringify(config));
  const place = ['--in', target[0], fixture.at(target[1]), '--by-column', 'email'];
  const words = [
    'forget',
    '--config',
    fixture.at('forget.json'),
    '--id',
    'marked-2@example.com',
    '--purge-only',
    '--json',
    ...place,
  ];
  const plan = await fixture.run(words, ENV);
  return fixture.run([...words, '--execute', '--confirm', JSON.parse(plan.result).hash], ENV);
}

const PEOPLE = [1, 2, 3].map((n) => person(n));
const withList = { ...LISTS, suppression_key: SUPPRESSION_KEY };

describe('a purge by a hashed column', () => {
  it.each(TARGETS)('finds its person in %s with the key, and suppresses that person', async (...target) => {
    // A row of the same person that has no mail address.
    fixture.serve([...PEOPLE, person(2, { id: 'marked-row-4', email: '' })]);
    expect((await fixture.sync(LISTS, [target[0], fixture.at(target[1])])).code).toBe(0);
    const done = await forget(target);
    expect(done.code, done.said).toBe(0);
    expect(JSON.parse(done.result)).toMatchObject({ places: [{ people: 1, rows_removed: 2, ids_without_rows: 0 }] });
    expect(fixture.holding(hmac('marked-person-2'))).toEqual([]);
    expect(fixture.holding('marked')).toEqual([]);
    const lists = { ...withList, suppression_file: fixture.at('suppressed.jsonl') };
    const days = ['--from', '2026-01-15', '--to', '2026-01-15'];
    const again = await fixture.sync(lists, [target[0], fixture.at(target[1])], '--json', ...days);
    expect(JSON.parse(again.result)).toMatchObject({ rows: 2, suppressed_rows: 2 });
    expect(fixture.holding(hmac('marked-person-2'))).toEqual([]);
  });
});

it('a suppression list knows a person by the real id, and loses nobody known by another key’s hash', async () => {
  fixture.serve(PEOPLE);
  expect((await fixture.sync()).code).toBe(0);
  expect((await forget(TARGETS[0])).code).toBe(0);
  const file = fixture.at('suppressed.jsonl');
  const [, entry] = readFileSync(file, 'utf8').trim().split('\n');
  expect(JSON.parse(entry)).toEqual({
    hmac: hmac(hmac('marked-person-2'), SUPPRESSION_KEY),
    hash_key: expect.any(String),
  });
  const real = JSON.stringify({ hmac: hmac('marked-person-1', SUPPRESSION_KEY) });
  writeFileSync(file, `${readFileSync(file, 'utf8')}${real}\n`);
  const lists = { ...withList, suppression_file: file };
  const both = await fixture.sync(lists, ['arrow', fixture.at('x.arrows')], '--json');
  expect(JSON.parse(both.result)).toMatchObject({ rows: 1, suppressed_rows: 2 });
  const rotated = { ...lists, hash_key: 'another key that has 32 characters, too' };
  const lost = await fixture.sync(rotated, ['arrow', fixture.at('y.arrows')]);
  expect([lost.code, lost.said]).toEqual([2, expect.stringMatching(/their rows would come back/)]);
});
