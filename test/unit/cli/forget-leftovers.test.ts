import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { runCommandLine } from '../../../src/cli/program.ts';
import { Spool } from '../../../src/extract/spool/spool.ts';
import { type DeletionServer, startDeletionServer } from '../../support/deletion/deletions.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let dir = '';
let server: DeletionServer;
let fixture: DuckDbFixture;
const at = (...names: string[]) => join(dir, ...names);

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-forget-'));
  fixture = new DuckDbFixture();
  server = await startDeletionServer();
  const config = { base_url: server.url, service_id: 's', import_token: 't', ledger_dir: at('ledger') };
  writeFileSync(at('config.json'), JSON.stringify(config));
});
afterEach(async () => {
  fixture.close();
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});

async function forget(...argv: string[]) {
  const results: string[] = [];
  const code = await runCommandLine(['forget', '--config', at('config.json'), '--json', ...argv], {
    terminal: {
      result: (line) => void results.push(line),
      note: () => {},
      record: async () => {},
      interactive: false,
      columns: 80,
    },
    clock: systemClock,
    env: () => undefined,
    signal: new AbortController().signal,
  });
  return { code, result: JSON.parse(results.at(-1) ?? '{}') };
}

/** Plans the words, confirms what was planned, and gives what came of it. */
async function forgetConfirmed(...words: string[]) {
  const plan = await forget(...words);
  return forget(...words, '--execute', '--confirm', String(plan.result.hash));
}

const bytesUnder = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');

it('a purge removes the person from the spools of earlier runs and the folders of dead ones', async () => {
  await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'e1', df_unified_id: 'the-person', member: 'm-1' }]))]);
  const spool = at('spool', 'dfinery-elt-0123456789abcdef');
  const dead = at('spool', 'dfinery-arrow-abc123');
  for (const folder of [at('spool'), spool, dead]) mkdirSync(folder, { mode: 0o700 });
  const stem = 'r0123456789abcdef-000001';
  writeFileSync(join(spool, `${stem}.csv`), 'df_unified_id\nthe-person\n', { mode: 0o600 });
  writeFileSync(join(spool, `${stem}.json`), '{"of":"the-person"}', { mode: 0o600 });
  writeFileSync(join(spool, 'malformed-1.csv'), 'the-person', { mode: 0o600 });
  writeFileSync(join(dead, 'window.csv'), 'the-person', { mode: 0o600 });
  const long = systemClock.now() / 1_000 - 3_600;
  utimesSync(dead, long, long);
  expect(bytesUnder(at('spool'))).toContain('the-person');
  const purge = ['--purge', 'duckdb', fixture.file, '--purge-column', 'member', '--spool-dir', at('spool')];
  const { code } = await forgetConfirmed('--id', 'm-1', ...purge);
  expect(code).toBe(0);
  expect(server.ids()).toEqual(['m-1']);
  expect(bytesUnder(at('spool'))).not.toContain('the-person');
});

it('a purge removes the person from the downloads of a live run that a later run would load', async () => {
  await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'e1', df_unified_id: 'the-person', member: 'm-1' }]))]);
  const open = () => Spool.open(at('spool'), 'request hash', 'fingerprint', systemClock);
  const live = await open();
  const stem = `${readdirSync(live.folder)[0]?.replace('.lease', '')}-000001`;
  writeFileSync(join(live.folder, `${stem}.csv`), 'df_unified_id\nthe-person\n', { mode: 0o600 });
  writeFileSync(join(live.folder, `${stem}.json`), '{}', { mode: 0o600 });
  const purge = ['--purge', 'duckdb', fixture.file, '--purge-column', 'member', '--spool-dir', at('spool')];
  const { code, result } = await forgetConfirmed('--id', 'm-1', ...purge);
  expect([code, result.unreached]).toEqual([0, [expect.stringContaining(live.folder)]]);
  expect(readdirSync(live.folder).sort()).toEqual([expect.stringMatching(/\.csv$/), expect.stringMatching(/\.lease$/)]);
  rmSync(join(live.folder, `${stem.replace('-000001', '')}.lease`));
  await (await open()).close();
  expect(readdirSync(at('spool'), { recursive: true }).filter((name) => String(name).endsWith('.csv'))).toEqual([]);
});

it('a purge removes rows that name the person by the external id alone', async () => {
  const rows = [
    { id: 'e1', df_unified_id: 'the-person', member: 'm-1' },
    { id: 'e2', df_unified_id: 'the-person', member: '' },
    { id: 'e3', df_unified_id: '', member: 'm-1' },
    { id: 'e4', df_unified_id: 'somebody', member: 'm-2' },
  ];
  await fixture.load([fixture.window('2026-01-01', csvOf(rows))]);
  const { code, result } = await forgetConfirmed(
    '--id',
    'm-1',
    '--purge',
    'duckdb',
    fixture.file,
    '--purge-column',
    'member',
  );
  expect(code).toBe(0);
  expect(result).toMatchObject({ done: 1, purged: { rows: 3 } });
  expect(await fixture.query('SELECT df_unified_id AS u, member AS m FROM events')).toEqual([
    { u: 'somebody', m: 'm-2' },
  ]);
});
