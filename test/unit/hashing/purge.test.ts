import { writeFileSync } from 'node:fs';
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
  const words = ['forget', '--config', fixture.at('forget.json'), '--id', 'marked-2@example.com', '--purge-only'];
  const plan = await fixture.run([...words, '--json', ...place], ENV);
  const consent = ['--execute', '--confirm', JSON.parse(plan.result).hash];
  return fixture.run([...words, '--json', ...place, ...consent], ENV);
}

describe('a purge by a hashed column', () => {
  it.each(TARGETS)('finds its person in %s with the key, and suppresses that person', async (...target) => {
    // A row of the same person that has no mail address.
    fixture.serve([person(1), person(2), person(3), person(2, { id: 'marked-row-4', email: '' })]);
    expect((await fixture.sync(LISTS, [target[0], fixture.at(target[1])])).code).toBe(0);
    const done = await forget(target);
    expect(done.code, done.said).toBe(0);
    expect(JSON.parse(done.result)).toMatchObject({ places: [{ people: 1, rows_removed: 2, ids_without_rows: 0 }] });
    expect(fixture.holding(hmac('marked-person-2'))).toEqual([]);
    expect(fixture.holding('marked')).toEqual([]);
    const lists = { ...LISTS, suppression_key: SUPPRESSION_KEY, suppression_file: fixture.at('suppressed.jsonl') };
    const days = ['--from', '2026-01-15', '--to', '2026-01-15'];
    const again = await fixture.sync(lists, [target[0], fixture.at(target[1])], '--json', ...days);
    expect(JSON.parse(again.result)).toMatchObject({ rows: 2, suppressed_rows: 2 });
    expect(fixture.holding(hmac('marked-person-2'))).toEqual([]);
  });
});
