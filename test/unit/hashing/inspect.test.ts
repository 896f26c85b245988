import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HASH_KEY, hmac, LISTS, PrivacyFixture, person } from '../../support/privacy.ts';
import { csvOf } from '../../support/targets/csv.ts';

let fixture: PrivacyFixture;
beforeEach(async () => {
  fixture = await PrivacyFixture.start();
  writeFileSync(fixture.at('export.csv'), csvOf([1, 2, 3].map((n) => person(n))));
});
afterEach(() => fixture.close());

interface Profile {
  readonly columns: readonly { readonly source: string; readonly type: string; readonly examples: readonly string[] }[];
}

describe('inspect with a configuration', () => {
  it('shows the loaded form: no dropped column, hashes for values', async () => {
    // A configuration of lists alone is enough: no service is asked.
    writeFileSync(fixture.at('lists.json'), JSON.stringify(LISTS));
    const words = ['inspect', fixture.at('export.csv'), '--config', fixture.at('lists.json')];
    const done = await fixture.run([...words, '--json']);
    expect(done.code, done.said).toBe(0);
    const { columns } = JSON.parse(done.result) as Profile;
    expect(columns.map(({ source }) => source)).not.toContain('phone');
    const email = columns.find(({ source }) => source === 'email');
    expect(email).toMatchObject({ type: 'string', distinct: 3 });
    expect(email?.examples).toContain(hmac('marked-1@example.com'));
    expect(done.result).not.toContain('marked');
    expect((await fixture.run(words)).result).not.toContain('marked');
  });

  it('reads the lists from the environment, and names columns that the file lacks', async () => {
    const env = { DFINERY_COLUMNS_HASH: 'email,nothing', DFINERY_HASH_KEY: HASH_KEY };
    const done = await fixture.run(['inspect', fixture.at('export.csv')], env);
    expect(done.result).not.toContain('@example.com');
    expect(done.said).toMatch(/does not have: nothing/);
    expect((await fixture.run(['inspect', fixture.at('export.csv')])).result).toContain('@example.com');
  });
});
