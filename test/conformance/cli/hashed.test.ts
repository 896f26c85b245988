import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HASH_KEY, hmac } from '../../support/privacy.ts';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { query } from '../../support/targets/query.ts';

/** For each target. */
const KILLS = Number(process.env.CLI_KILLS ?? 2);
const LISTS = { columns_drop: ['fax'], columns_hash: ['mail'], hash_key: HASH_KEY };

let fixture: CliFixture;
beforeEach(async () => {
  const own = [
    { name: 'mail', values: ['marked@example.com', 'say "marked"'] },
    { name: 'fax', values: ['marked-fax'] },
  ];
  fixture = await CliFixture.start({ columns: { own }, limits: { exports_per_hour: 100_000 } }, { rowsPerDay: 2_000 });
});
afterEach(() => fixture.close());

function holding(text: string): string[] {
  const entries = readdirSync(fixture.dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = entries.filter(({ name }) => !name.startsWith('config-')).map((e) => join(e.parentPath, e.name));
  return files.filter((file) => readFileSync(file).includes(text));
}

/** Mails of what is stored, read by DuckDB alone: Parquet is compressed, so a search for bytes would not find them there. */
async function mailsIn(target: string, place: string): Promise<unknown[]> {
  const [file, from] =
    target === 'duckdb' ? [place, 'events'] : [':memory:', `read_parquet('${place}/events/**/*.parquet')`];
  const rows = await query(file, `SELECT DISTINCT mail FROM ${from} WHERE mail IS NOT NULL ORDER BY mail`);
  return rows.map(({ mail }) => mail);
}

describe('SIGKILL at any instant, with columns dropped and hashed', () => {
  it.each(['duckdb', 'parquet', 'delta'])(
    'leaves no byte of a value in sync %s: place, log, spool, temporary folder',
    async (target) => {
      const place = target === 'duckdb' ? fixture.file : join(fixture.dir, 'lake');
      const config = { ...LISTS, start_date: daysBack(14) };
      const line = (more: readonly string[] = []) => fixture.syncInto(target, place, config, more);
      const random = new SeededRandom(KILLS);
      for (let kill = 0; kill < KILLS; kill++) {
        const child = fixture.start(line(['--full-refresh', '--log-level', 'debug']));
        await Promise.race([child.ended, delay(random.int(500, 2_000))]);
        child.process.kill('SIGKILL');
        const ended = await child.ended;
        expect(ended.stderr + ended.stdout).not.toMatch(/marked|a hash key/);
        expect(holding('marked')).toEqual([]);
      }
      const last = await fixture.run(line());
      expect(last.code, last.stderr).toBe(0);
      expect(holding('marked')).toEqual([]);
      expect(await mailsIn(target, place)).toEqual([hmac('marked@example.com'), hmac('say "marked"')].sort());
    },
  );
});
