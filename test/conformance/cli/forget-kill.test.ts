import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { literal } from '../../../src/cells/types/sql.ts';
import { TABLES } from '../../../src/table/columns.ts';
import { type DeletionServer, startDeletionServer } from '../../support/deletion/deletions.ts';
import { envOf } from '../../support/env.ts';
import { CliChild, type Ended, PROGRAM } from '../../support/processes/cli-child.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';
import { query } from '../../support/targets/query.ts';
import { DISK_TARGETS, statefulTarget, type TargetName } from '../../support/targets/target-fixture.ts';

/** Kills of a place. */
const KILLS = process.env.SOAK_SEEDS === undefined ? 3 : 60;
const KILL_AFTER = join(import.meta.dirname, '../../support/processes/kill-after.cjs');
const CHANGES = /^(Put|Delete|Create|Upload|Complete|Abort)/;
const DAYS = ['2026-01-01', '2026-01-02', '2026-01-03'];
const PEOPLE = ['erna', 'hans', 'olga'];

let fixture: DuckDbFixture;
let server: DeletionServer;
let s3: FakeS3;
const at = (...names: string[]) => join(fixture.dir, ...names);

beforeEach(async () => {
  fixture = new DuckDbFixture();
  server = await startDeletionServer();
  s3 = await FakeS3.start();
  s3.versions = [];
  // The SDK asks the process for them.
  for (const [variable, value] of Object.entries(s3.env)) vi.stubEnv(variable, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all([server.close(), s3.close()]);
  fixture.close();
});

/** What stands in rows of the person alone. */
const textsOf = (person: string) => [`u-${person}-1970`, `m-${person}-1970`, `event_of_${person}`, `note of ${person}`];

const rowsOf = (day: string) =>
  csvOf(
    PEOPLE.flatMap((person) => {
      const [df_unified_id = '', member = '', df_event_name = '', note = ''] = textsOf(person);
      const row = { df_unified_id, df_event_name, note, df_items_x: note, ...on(day) };
      return [
        { id: `${person}-${day}-a`, member, ...row },
        { id: `${person}-${day}-b`, member: '', ...row },
      ];
    }),
  );

const BUCKET = 'delta in a bucket';
type Name = TargetName | typeof BUCKET;

/** A target and its place: below `live`, or in the bucket. */
const placeWords = (name: Name): readonly [target: string, place: string] =>
  name === BUCKET ? ['delta', 's3://bucket/lake'] : [name, at('live', name)];

async function load(name: Name): Promise<void> {
  const [target, place] = placeWords(name);
  const more = { spoolDir: at('live/spool'), env: envOf(s3.env), retentionMs: 86_400_000, tables: TABLES };
  const { signal, targetOptions } = fixture;
  const options = { ...targetOptions, ...more, stdout: process.stdout, signal };
  const sink = await statefulTarget(target).open(place, options);
  for (const day of DAYS) await sink.commit([fixture.window(day, rowsOf(day))], fixture.signal);
  await sink.close();
}

/** Where bytes of these texts are, in whatever the program has written; what a file holds compressed is looked at, too. */
async function found(texts: readonly string[]): Promise<string[]> {
  s3.dump('', at('live/bucket'));
  mkdirSync(at('live/bucket'), { recursive: true });
  for (const [n, { bytes }] of (s3.versions ?? []).entries()) {
    if (bytes !== undefined) writeFileSync(at('live/bucket', `version-${n}`), bytes);
  }
  const where: string[] = [];
  const entries = readdirSync(at('live'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const path of entries.map((entry) => join(entry.parentPath, entry.name))) {
    const bytes = readFileSync(path);
    let text = bytes.toString('latin1');
    if (text.startsWith('PAR1')) {
      const of = literal(path);
      text += JSON.stringify(await query(':memory:', `FROM read_parquet(${of}, hive_partitioning = false)`));
      text += JSON.stringify(await query(':memory:', `FROM parquet_metadata(${of})`));
    }
    where.push(...texts.filter((one) => text.includes(one)).map((one) => `${path}: ${one}`));
  }
  return where;
}

it.each<Name>([...DISK_TARGETS, BUCKET])(
  'after kill -9 at any step of a purge of %s the same command finishes it, and no other row is lost',
  async (name) => {
    const env = { ...s3.env, DFINERY_SUPPRESSION_KEY: 'a suppression key of 32 characters' };
    mkdirSync(at('live/spool'), { recursive: true, mode: 0o700 });
    const config = { base_url: server.url, service_id: 's', import_token: 't', ledger_dir: at('live/ledger') };
    writeFileSync(at('config.json'), JSON.stringify(config));
    await load(name);
    cpSync(at('live'), at('base'), { recursive: true, preserveTimestamps: true });
    const stored = { objects: new Map(s3.objects), versions: [...(s3.versions ?? [])] };
    const restore = () => {
      rmSync(at('live'), { recursive: true });
      cpSync(at('base'), at('live'), { recursive: true, preserveTimestamps: true });
      s3.reset();
      s3.objects.clear();
      for (const [key, object] of stored.objects) s3.objects.set(key, object);
      s3.versions = [...stored.versions];
      s3.uploads.clear();
    };
    const place = placeWords(name);
    const spool = ['--spool-dir', at('live/spool')];
    const words = ['forget', '--id', 'm-erna-1970', '--config', at('config.json'), '--json', ...spool];
    words.push('--suppression-file', at('live/suppressed.jsonl'), '--purge-column', 'member', '--purge', ...place);
    const plan = await runHere(words, { env });
    const confirmed = [...words, '--execute', '--confirm', JSON.parse(plan.stdout).hash];
    const start = (more: Record<string, string> = {}) =>
      new CliChild(process.execPath, ['-r', KILL_AFTER, PROGRAM, ...confirmed], {
        TMPDIR: fixture.dir,
        ...env,
        ...more,
      });

    expect(await found(textsOf('erna'))).not.toEqual([]);
    let requests = 0;
    s3.outcomeOf = ({ what }) => {
      if (CHANGES.test(what)) requests++;
      return 'normal';
    };
    const whole = await start({ STEPS_FILE: at('steps') }).ended;
    expect(whole.code, whole.stderr).toBe(0);
    const steps = Number(readFileSync(at('steps'), 'utf8'));

    /** A run that is killed after so many steps; of a bucket, at so many requests that change it. */
    const killed = (share: number, isAnswered: boolean): Promise<Ended> => {
      if (requests === 0) return start({ KILL_AFTER: `any:${1 + Math.floor(share * steps)}` }).ended;
      const child = start();
      let left = 1 + Math.floor(share * requests);
      s3.outcomeOf = ({ what }) => {
        if (!CHANGES.test(what) || --left > 0) return 'normal';
        child.process.kill('SIGKILL');
        return isAnswered ? 'answer lost' : 'cut';
      };
      return child.ended;
    };
    const random = new SeededRandom(KILLS);
    for (let kill = 0; kill < KILLS; kill++) {
      restore();
      const share = (kill + random.unit()) / KILLS;
      await killed(share, random.chance(0.5));
      // Every other one is killed once more where it goes on.
      if (kill % 2 === 1) await killed(random.unit(), random.chance(0.5));
      s3.reset();
      const again = await start().ended;
      expect(again.code, `${share} of ${steps} steps: ${again.stderr}`).toBe(0);
      expect(await found(textsOf('erna')), `${share} of ${steps} steps`).toEqual([]);
      const verified = await runHere(['verify', ...place, ...spool], { env });
      expect([verified.code, verified.stderr]).toEqual([0, expect.anything()]);
      for (const [person, rows] of Object.entries({ erna: 0, hans: 6, olga: 6 })) {
        const by = ['--id', `u-${person}-1970`, '--by-column', 'df_unified_id'];
        const { stdout } = await runHere(['person', ...by, '--in', ...place, ...spool], { env });
        expect(stdout.split('\n').filter(Boolean), person).toHaveLength(rows);
      }
    }
    expect(existsSync(at('live/suppressed.jsonl'))).toBe(true);
  },
);

it('after kill -9 within the purge of a file that --query reads the list from the same command finishes it', async () => {
  const config = { base_url: server.url, service_id: 's', import_token: 't', ledger_dir: at('live/ledger') };
  writeFileSync(at('config.json'), JSON.stringify(config));
  mkdirSync(at('live/spool'), { recursive: true, mode: 0o700 });
  const places = ['duckdb', 'parquet'] as const;
  for (const name of places) await load(name);
  cpSync(at('live'), at('base'), { recursive: true, preserveTimestamps: true });
  const ids = ['m-erna-1970', 'm-hans-1970'];
  const sql = `SELECT DISTINCT member FROM events WHERE member IN ('${ids.join("', '")}')`;
  const spool = ['--spool-dir', at('live/spool')];
  const words = [
    'forget',
    '--query',
    sql,
    '--duckdb',
    at('live/duckdb'),
    '--config',
    at('config.json'),
    '--json',
    ...spool,
  ];
  words.push('--purge-column', 'member', ...places.flatMap((name) => ['--purge', ...placeWords(name)]));
  const confirmed = [...words, '--execute', '--confirm', JSON.parse((await runHere(words)).stdout).hash];
  const start = (more: Record<string, string>) =>
    new CliChild(process.execPath, ['-r', KILL_AFTER, PROGRAM, ...confirmed], { TMPDIR: fixture.dir, ...more }).ended;
  const rowsOfPerson = async (person: string, name: (typeof places)[number]) => {
    const by = ['--id', `u-${person}-1970`, '--by-column', 'df_unified_id'];
    const { stdout } = await runHere(['person', ...by, '--in', ...placeWords(name), ...spool]);
    return stdout.split('\n').filter(Boolean).length;
  };

  const whole = await start({ STEPS_FILE: at('steps') });
  expect(whole.code, whole.stderr).toBe(0);
  const steps = Number(readFileSync(at('steps'), 'utf8'));
  for (let kill = 0; kill < KILLS; kill++) {
    rmSync(at('live'), { recursive: true });
    cpSync(at('base'), at('live'), { recursive: true, preserveTimestamps: true });
    const before = server.ids().length;
    // The last steps: all are deleted at the service, and the file of the list is purged last.
    const step = steps - 1 - Math.floor((kill / KILLS) * (steps / 3));
    expect((await start({ KILL_AFTER: `any:${step}` })).signal).toBe('SIGKILL');
    const ledger = readdirSync(at('live/ledger')).filter((file) => file.endsWith('.jsonl'));
    const lines = ledger.map((file) => readFileSync(at('live/ledger', file), 'utf8')).join('');
    expect([lines.includes('"kind":"purging"'), lines.includes('"kind":"close"')], `step ${step}`).toEqual([
      true,
      false,
    ]);
    // The first kill leaves a file that gives nobody.
    expect(await rowsOfPerson('erna', 'duckdb')).toBe(kill === 0 ? 0 : 6);
    const again = await start({});
    expect(again.code, `${step} of ${steps} steps: ${again.stderr}`).toBe(0);
    expect(server.ids().slice(before).sort()).toEqual(ids);
    expect(await found(['erna', 'hans'].flatMap(textsOf)), `${step} of ${steps} steps`).toEqual([]);
    for (const name of places) expect(await rowsOfPerson('olga', name)).toBe(6);
  }
});
