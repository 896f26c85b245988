import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import { loadSuppression } from '../../../src/erasure/suppression/list.ts';
import type { Sink } from '../../../src/targets/sink.ts';
import { type DeletionServer, json, SUCCESS, startDeletionServer } from '../../support/deletion/deletions.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { DISK_TARGETS, statefulTarget } from '../../support/targets/target-fixture.ts';

let server: DeletionServer;
let fixture: DuckDbFixture;
let onDeletion: () => void;
const at = (name: string) => join(fixture.dir, name);
beforeEach(async () => {
  fixture = new DuckDbFixture();
  onDeletion = () => {};
  server = await startDeletionServer((_deletion, response) => {
    onDeletion();
    json(response, SUCCESS);
  });
  const config = { base_url: server.url, service_id: 's', import_token: 't', ledger_dir: at('ledger') };
  writeFileSync(at('config.json'), JSON.stringify(config));
  mkdirSync(at('spool'));
  mkdirSync(at('target'));
});
afterEach(async () => {
  await server.close();
  fixture.close();
});

const placeOf = (target: string) => at(`target/${target}`);

/** Loads one day of these rows. */
async function load(target: string, day: string, rows: readonly Cells[], schemaMode: 'evolve' | 'freeze' = 'evolve') {
  const sink = await openPlace(target, schemaMode);
  const dated = rows.map((row) => ({ df_server_datetime: `${day} 10:00:00.000`, ...row }));
  await sink.commit([fixture.window(day, csvOf(dated))], fixture.signal);
  await sink.close();
}

function openPlace(target: string, schemaMode: 'evolve' | 'freeze'): Promise<Sink> {
  const options = {
    ...fixture.targetOptions,
    schemaMode,
    tables: [],
    retentionMs: 0,
    spoolDir: at('spool'),
    env: () => undefined,
    stdout: process.stdout,
    signal: fixture.signal,
  };
  return statefulTarget(target).open(placeOf(target), options);
}

/** Plans and executes; what was said and what came of it. */
async function forget(target: string, id: string, column = 'member') {
  const place = ['--purge', target, placeOf(target), '--purge-column', column, '--spool-dir', at('spool')];
  const words = ['forget', '--config', at('config.json'), '--id', id, '--json', ...place];
  const env = { DFINERY_SUPPRESSION_KEY: 'a suppression key of 32 characters' };
  const list = ['--suppression-file', at('suppressed.jsonl')];
  const plan = await runHere([...words, ...list], { env });
  const { hash } = JSON.parse(plan.stdout);
  const done = await runHere([...words, ...list, '--execute', '--confirm', hash], { env });
  expect(done.code, done.stderr).toBe(0);
  return { plan, result: JSON.parse(done.stdout) };
}

const holding = (text: string) =>
  readdirSync(at('target'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(text))
    .map(({ name }) => name);

it('a purge that fails after the deletion says that the deletion is done, and the next run only purges', async () => {
  await load('delta', '2026-01-01', [{ id: 'e1', df_unified_id: 'marked-person', member: 'm-1' }, { id: 'e2' }]);
  const log = join(placeOf('delta'), 'events/_delta_log');
  const last = readdirSync(log).sort().at(-1) ?? '';
  const words = ['--purge', 'delta', placeOf('delta'), '--purge-column', 'member', '--spool-dir', at('spool')];
  const list = ['--suppression-file', at('suppressed.jsonl')];
  const env = { DFINERY_SUPPRESSION_KEY: 'a suppression key of 32 characters' };
  const forgetting = ['forget', '--config', at('config.json'), '--id', 'm-1', '--json', ...words, ...list];
  const { hash } = JSON.parse((await runHere(forgetting, { env })).stdout);
  onDeletion = () => rmSync(join(log, last));
  const kept = readFileSync(join(log, last));
  const failed = await runHere([...forgetting, '--execute', '--confirm', hash], { env });
  expect(failed.code).not.toBe(0);
  const { head, ...report } = JSON.parse(failed.stdout);
  expect(report).toMatchObject({ done: 1, undecided: 0 });
  expect(report).not.toHaveProperty('purged');
  const verdict = await runHere(['forget', '--verify-ledger', at('ledger'), '--json']);
  expect(JSON.parse(verdict.stdout)).toMatchObject({ ok: true, head, files: [{ closed: false }] });
  expect(failed.stderr).toMatch(
    /These people are deleted at the service; the purge is not done: .* run again with the same list/,
  );
  writeFileSync(join(log, last), kept);
  expect((await runHere([...forgetting, '--execute', '--confirm', hash], { env })).code).toBe(0);
  expect(server.ids()).toEqual(['m-1']);
  expect(holding('marked-person')).toEqual([]);
  const { isSuppressed } = loadSuppression(at('suppressed.jsonl'), new Secret(env.DFINERY_SUPPRESSION_KEY));
  expect(isSuppressed(Buffer.from('marked-person'), 0, 'marked-person'.length)).toBe(true);
});

describe('a person whom a purge looks up', () => {
  it.each(DISK_TARGETS)(
    'is found in %s by a cell that did not fit its column, and removed completely; the files are counted',
    async (target) => {
      await load(target, '2026-01-01', [{ id: 'e1', df_unified_id: 'somebody', member: '1' }]);
      const person = 'marked-person';
      const rows = [
        { id: 'e2', df_unified_id: person, member: 'A-77' },
        { id: 'e3', df_unified_id: person, member: '' },
        { id: 'e4', df_unified_id: 'another', member: '2' },
      ];
      await load(target, '2026-01-02', rows, 'freeze');
      expect(holding(person)).not.toEqual([]);
      await load(target, '2026-01-03', [{ id: 'e5', df_unified_id: person, member: '' }, { id: 'e6' }], 'freeze');
      const { result } = await forget(target, 'A-77');
      const files_rewritten = target === 'duckdb' ? 1 : 2;
      expect(result).toMatchObject({ ids_without_match: 0, purged: { people: 1, rows: 3, files_rewritten } });
      expect(holding(person)).toEqual([]);
      expect(holding('A-77')).toEqual([]);
    },
  );

  it('is found by a cell that was refused under freeze before the column was added, and removed completely', async () => {
    const target = 'delta';
    const person = 'marked-person';
    await load(target, '2026-01-01', [{ id: 'e1', df_unified_id: 'somebody' }]);
    const rows = [
      { id: 'e2', df_unified_id: person, member: 'A-77' },
      { id: 'e7', df_unified_id: '', member: 'A-77' },
    ];
    await load(target, '2026-01-02', rows, 'freeze');
    await load(target, '2026-01-03', [{ id: 'e3', df_unified_id: 'another', member: 'B-1' }]);
    await load(target, '2026-01-04', [{ id: 'e4', df_unified_id: '', member: 'A-78' }, { id: 'e5' }], 'freeze');
    const { result } = await forget(target, 'A-77');
    expect(result).toMatchObject({ ids_without_match: 0, purged: { people: 1, rows: 2 } });
    expect([...holding(person), ...holding('A-77')]).toEqual([]);
  });

  it.each(DISK_TARGETS)('is found in %s by an id that the column holds as a number or a boolean', async (target) => {
    const rows = [
      { id: 'e1', df_unified_id: 'marked-person', member: '12', letter: 'FALSE' },
      { id: 'e2', df_unified_id: 'somebody', member: '1.5', letter: 'TRUE' },
      { id: 'e3', df_unified_id: '', member: '12', letter: '' },
    ];
    await load(target, '2026-01-01', rows);
    const { result } = await forget(target, '12');
    expect(result).toMatchObject({ ids_without_match: 0, purged: { people: 1, rows: 2 } });
    expect(holding('marked-person')).toEqual([]);
    const { result: second } = await forget(target, 'TRUE', 'letter');
    expect(second).toMatchObject({ ids_without_match: 0, purged: { people: 1, rows: 1 } });
  });

  it('is found by a mapping read from a pipe', async () => {
    await load('duckdb', '2026-01-01', [{ id: 'e1', df_unified_id: 'u-2', member: 'x' }, { id: 'e2' }]);
    const pairs = Array.from({ length: 20_000 }, (_, i) => `${i},u-${i}`);
    writeFileSync(at('mapping.csv'), `external_id,df_unified_id\n${pairs.join('\n')}\n`);
    execFileSync('mkfifo', [at('pipe')]);
    const writer = spawn('sh', ['-c', 'cat "$1" > "$2"', 'sh', at('mapping.csv'), at('pipe')]);
    const place = ['--purge', 'duckdb', placeOf('duckdb'), '--mapping', at('pipe'), '--spool-dir', at('spool')];
    const ids = ['--id', '2', '--config', at('config.json')];
    const plan = await runHere(['forget', ...ids, '--json', ...place]);
    writer.kill();
    expect(JSON.parse(plan.stdout)).toMatchObject({ people_to_purge: 1, ids_without_match: 0 });
  });

  it.each(DISK_TARGETS)(
    'is found in %s when no row has a unified id, and the report says who may come back',
    async (target) => {
      const rows = [
        { id: 'e1', df_unified_id: '', member: 'marked-member' },
        { id: 'e2', df_unified_id: 'somebody', member: 'm-2' },
      ];
      await load(target, '2026-01-01', rows);
      const { plan, result } = await forget(target, 'marked-member');
      expect(plan.stderr).not.toContain('None of these IDs');
      expect(plan.stderr).toMatch(/1 ID of these stand in rows without a df_unified_id/);
      expect(result).toMatchObject({ ids_without_match: 0, purged: { people: 0, rows: 1 } });
      expect(holding('marked-member')).toEqual([]);
    },
  );

  it.each(DISK_TARGETS)('inside a list of %s is not found, and the report says so', async (target) => {
    const rows = [
      { id: 'e1', df_unified_id: 'u1', members: '["m-1","m-2"]', member: 'm-1' },
      { id: 'e2', df_unified_id: 'u2', members: '["m-3"]', member: 'm-3' },
    ];
    await load(target, '2026-01-01', rows);
    const { plan, result } = await forget(target, 'm-1', 'members');
    expect(plan.stderr).toMatch(/members has lists, and an ID inside a list is not found/);
    expect(result).toMatchObject({ ids_without_match: 1, purged: { people: 0, rows: 0 } });
    const words = ['person', '--id', 'm-1', '--in', target, placeOf(target), '--config', at('config.json')];
    expect((await runHere([...words, '--by-column', 'members'])).stderr).toContain('an ID inside a list is not found');
    expect((await runHere([...words, '--by-column', 'member'])).stderr).not.toContain('inside a list');
  });
});

it.each([
  ['given twice', { DFINERY_HASH_KEY: 'a', DFINERY_HASH_KEY_FILE: '/b' }, /are both set, wanted one of them/],
  ['in a file that is not there', { DFINERY_HASH_KEY_FILE: '/none' }, /DFINERY_HASH_KEY_FILE names cannot be read/],
])('a hash key %s is refused', async (_how, env, message) => {
  const argv = ['person', '--id', 'a', '--in', 'duckdb', at('x.duckdb'), '--by-column', 'c'];
  const { code, stderr } = await runHere(argv, { env });
  expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
});
