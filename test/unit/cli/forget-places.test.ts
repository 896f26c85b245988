import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import type { ColumnType } from '../../../src/cells/types/type.ts';
import { loadSuppression } from '../../../src/erasure/suppression/list.ts';
import { serviceHash } from '../../../src/extract/export-request.ts';
import type { Rules } from '../../../src/table/plan.ts';
import { DEFAULT_RETENTION_MS } from '../../../src/targets/files/stored-files.ts';
import type { Sink } from '../../../src/targets/sink.ts';
import { type DeletionServer, json, SUCCESS, startDeletionServer } from '../../support/deletion/deletions.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { type Cells, csvOf, on } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { query } from '../../support/targets/query.ts';
import { statefulTarget } from '../../support/targets/target-fixture.ts';

let server: DeletionServer;
let fixture: DuckDbFixture;
let answerTo: (id: string) => object;
let onDeletion: () => Promise<void>;
const REJECTED = { status: false, code: '40001', message: 'VALIDATION_FAILURE', data: null };
const UNCLEAR = { status: false, code: '40402', message: 'what is this', data: null };
const ENV = { DFINERY_SUPPRESSION_KEY: 'a suppression key of 32 characters' };
const DAY = '2026-01-01';
const at = (name: string) => join(fixture.dir, name);

beforeEach(async () => {
  fixture = new DuckDbFixture();
  answerTo = () => SUCCESS;
  onDeletion = async () => {};
  server = await startDeletionServer(({ id }, response) => {
    void onDeletion().then(() => json(response, answerTo(id ?? '')));
  });
  configure();
  mkdirSync(at('spool'));
});
afterEach(async () => {
  await server.close();
  fixture.close();
});

function configure(more: object = {}): void {
  const config = { base_url: server.url, service_id: 's', import_token: 't', ledger_dir: at('ledger'), ...more };
  writeFileSync(at('config.json'), JSON.stringify(config));
}

async function load(
  name: string,
  rows: readonly Cells[],
  day = DAY,
  { copy, service, types }: { copy?: string; service?: string; types?: Rules['columnTypes'] } = {},
): Promise<void> {
  const more = {
    tables: [],
    spoolDir: at('spool'),
    env: () => undefined,
    retentionMs: DEFAULT_RETENTION_MS,
    stdout: process.stdout,
  };
  const options = { ...fixture.targetOptions, ...more, ...(types && { columnTypes: types }), signal: fixture.signal };
  const sink = (await statefulTarget(targetOf(name)).open(at(name), options)) as Sink;
  const window = fixture.window(day, csvOf(rows.map((row) => ({ ...on(day), ...row }))));
  await sink.commit([{ ...window, state: { ...window.state, ...(service && { service }) } }], fixture.signal);
  if (copy !== undefined) await sink.publish?.(copy);
  await sink.close();
}

/** The target of a place: `duckdb` of `a.duckdb`, `parquet` of any other name. */
const targetOf = (name: string) => /\.(duckdb)$/.exec(name)?.[1] ?? 'parquet';
const placeWords = (...names: string[]) => names.flatMap((name) => ['--purge', targetOf(name), at(name)]);
const BY_MEMBER = ['--purge-column', 'member'];

const run = (words: readonly string[]) =>
  runHere(['forget', '--config', at('config.json'), '--json', '--spool-dir', at('spool'), ...words], { env: ENV });

/** Plans, confirms and executes. */
async function forget(ids: readonly string[], ...words: string[]) {
  writeFileSync(at('ids.txt'), `external_id\n${ids.join('\n')}\n`);
  const all = ['--file', at('ids.txt'), ...words];
  const plan = await run(all);
  expect(plan.code, plan.stderr).toBe(0);
  const done = await run([...all, '--execute', '--confirm', JSON.parse(plan.stdout).hash]);
  return { ...done, plan: JSON.parse(plan.stdout), report: JSON.parse(done.stdout) };
}

const keysIn = async (name: string) =>
  (await query(at(name), 'SELECT _key FROM events ORDER BY 1')).map(({ _key }) => _key);
const lines = () =>
  readdirSync(at('ledger'))
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
    .flatMap((name) =>
      readFileSync(join(at('ledger'), name), 'utf8')
        .trimEnd()
        .split('\n'),
    )
    .map((line) => JSON.parse(line));

const person = (id: string, unified: string, member: string): Cells => ({ id, df_unified_id: unified, member });

describe('a purge', () => {
  it('takes several locations, each with its own line of the ledger, and --proof lists what was removed where', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')]);
    await load('b.duckdb', [person('e1', 'u1', 'm1'), person('e3', 'u1', ''), person('e4', 'u3', 'm3')]);
    const { report, code } = await forget(['m1', 'm9', 'm3'], ...placeWords('a.duckdb', 'b.duckdb'), ...BY_MEMBER);
    expect(code).toBe(0);
    expect(report.places).toMatchObject([
      {
        target: 'duckdb',
        place: at('a.duckdb'),
        people: 1,
        rows: 1,
        rows_removed: 1,
        ids_without_rows: 2,
        row_numbers: [2, 3],
      },
      {
        target: 'duckdb',
        place: at('b.duckdb'),
        people: 2,
        rows: 3,
        rows_removed: 3,
        ids_without_rows: 1,
        row_numbers: [2],
      },
    ]);
    expect(report).toMatchObject({ ids_without_match: 1, purged: { rows: 4 } });
    expect([await keysIn('a.duckdb'), await keysIn('b.duckdb')]).toEqual([['e2'], []]);
    const words = ['forget', '--proof', 'm1', '--ledger-dir', at('ledger'), '--json'];
    const proof = await runHere(words);
    expect(JSON.parse(proof.stdout)).toMatchObject({
      erased: true,
      purges: [
        { target: `duckdb ${at('a.duckdb')}`, outcome: 'done', counts: { rows: 1 } },
        { target: `duckdb ${at('b.duckdb')}`, outcome: 'done', counts: { rows: 3 } },
      ],
    });
    const cut = await runHere([...words, '--head', 'f'.repeat(64)]);
    expect([cut.code, JSON.parse(cut.stdout).erased]).toEqual([1, false]);
  });

  it('leaves the file that --query reads the list from until every other location is purged', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')]);
    await load('b.duckdb', [person('e1', 'u1', 'm1')]);
    symlinkSync(at('a.duckdb'), at('link.duckdb'));
    const kept = readFileSync(at('b.duckdb'));
    const words = [...placeWords('a.duckdb', 'b.duckdb'), ...BY_MEMBER];
    words.push('--query', "SELECT member FROM events WHERE member = 'm1'", '--duckdb', at('link.duckdb'));
    const { hash } = JSON.parse((await run(words)).stdout);
    onDeletion = async () => writeFileSync(at('b.duckdb'), 'no database');
    const first = await run([...words, '--execute', '--confirm', hash]);
    expect(JSON.parse(first.stdout)).toMatchObject({
      done: 1,
      places: [{ rows_removed: null, error: expect.stringContaining('the list is read from it') }, {}],
    });
    expect([first.code, await keysIn('a.duckdb')]).toEqual([2, ['e1', 'e2']]);
    writeFileSync(at('b.duckdb'), kept);
    const second = await run([...words, '--execute', '--confirm', hash]);
    expect([second.code, await keysIn('a.duckdb'), await keysIn('b.duckdb')]).toEqual([0, ['e2'], []]);
    const written = lines().flatMap(({ kind, target }) => (kind === 'purge' ? [target] : []));
    const [a, b] = ['a.duckdb', 'b.duckdb'].map((name) => `duckdb ${at(name)}`);
    expect([written, server.ids()]).toEqual([[b, a, b, a], ['m1']]);
  });

  it('leaves that file also until the downloads of dead runs are removed', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')]);
    // A folder cannot be removed as a file is.
    const download = join(at('spool'), `dfinery-elt-${'0'.repeat(16)}`, `r${'0'.repeat(16)}-000001.csv`);
    mkdirSync(download, { recursive: true, mode: 0o700 });
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER];
    words.push('--query', "SELECT member FROM events WHERE member = 'm1'", '--duckdb', at('a.duckdb'));
    const { hash } = JSON.parse((await run(words)).stdout);
    const first = await run([...words, '--execute', '--confirm', hash]);
    expect(JSON.parse(first.stdout)).toMatchObject({ exit: 3, error: expect.stringContaining(download) });
    expect(await keysIn('a.duckdb')).toEqual(['e1', 'e2']);
    rmSync(download, { recursive: true });
    const second = await run([...words, '--execute', '--confirm', hash]);
    expect([second.code, await keysIn('a.duckdb'), server.ids()]).toEqual([0, ['e2'], ['m1']]);
  });

  const queryOf = (file: string, where: string) => [
    '--query',
    `SELECT member FROM events WHERE ${where}`,
    '--duckdb',
    at(file),
  ];

  it('is finished by the same command where the file of --query no longer has those who were deleted', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2'), person('e3', 'u3', 'm3')]);
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER, ...queryOf('a.duckdb', "member <= 'm2'")];
    const confirmed = [...words, '--execute', '--confirm', JSON.parse((await run(words)).stdout).hash];
    answerTo = (id) => (id === 'm1' ? SUCCESS : UNCLEAR);
    const first = await run(confirmed);
    expect([first.code, first.stderr]).toEqual([3, expect.stringContaining('Run again with the same list within 24')]);
    expect(await keysIn('a.duckdb')).toEqual(['e2', 'e3']);
    answerTo = () => SUCCESS;
    const second = await run(confirmed);
    expect([second.code, second.stderr, await keysIn('a.duckdb')]).toEqual([0, expect.anything(), ['e3']]);
    expect([...new Set(server.ids())]).toEqual(['m1', 'm2']);
    expect(server.ids().filter((id) => id === 'm1')).toHaveLength(1);
    const opened = lines().filter(({ kind }) => kind === 'open');
    expect(opened.map(({ list, resumes }) => [list, resumes])).toEqual([
      [opened[0].list, undefined],
      [opened[0].list, opened[0].run],
    ]);
    // Complete: the confirmation is used up.
    expect((await run(confirmed)).code).toBe(2);
    const proof = await runHere(['forget', '--proof', 'm1', '--config', at('config.json'), '--json']);
    expect([proof.code, JSON.parse(proof.stdout)]).toMatchObject([
      0,
      { erased: true, purges: [{ outcome: 'done', counts: { rows: 1 } }, { outcome: 'done' }] },
    ]);
  });

  it.each([[[]], [['--purge-only']]])(
    'is finished by the same command where that file is purged and a copy for readers of it is not: %j',
    async (more) => {
      await load('a.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')], DAY, { copy: at('copy.duckdb') });
      const words = [...placeWords('a.duckdb'), ...BY_MEMBER, ...queryOf('a.duckdb', "member = 'm1'"), ...more];
      const confirmed = [...words, '--execute', '--confirm', JSON.parse((await run(words)).stdout).hash];
      const kept = readFileSync(at('copy.duckdb'));
      rmSync(at('copy.duckdb'));
      expect([(await run(confirmed)).code, await keysIn('a.duckdb')]).toEqual([3, ['e2']]);
      expect((await run(confirmed)).code).toBe(3);
      writeFileSync(at('copy.duckdb'), kept);
      const last = await run(confirmed);
      expect([last.code, last.stderr, await keysIn('copy.duckdb')]).toEqual([0, expect.anything(), ['e2']]);
      expect(lines().at(-1)).toMatchObject({ kind: 'close' });
      expect(server.ids()).toEqual(more.length > 0 ? [] : ['m1']);
    },
  );

  it('takes no confirmation for the rest of a list for another person, place or column', async () => {
    const rows = [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')];
    for (const name of ['a.duckdb', 'b.duckdb']) await load(name, rows, DAY, { copy: at(`copy of ${name}`) });
    const query = queryOf('a.duckdb', "member = 'm1' OR _key = 'e7'");
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER, ...query];
    const confirm = ['--execute', '--confirm', JSON.parse((await run(words)).stdout).hash];
    rmSync(at('copy of a.duckdb'));
    expect((await run([...words, ...confirm])).code).toBe(3);
    const refused = async (...other: string[]) =>
      expect(await run([...other, ...confirm])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('is not what was confirmed'),
      });
    await refused(...placeWords('a.duckdb', 'b.duckdb'), ...BY_MEMBER, ...query);
    await refused(...placeWords('a.duckdb'), '--purge-column', 'df_unified_id', ...query);
    await refused(...words, '--purge-only');
    await load('a.duckdb', [person('e7', 'u7', 'm7')], '2026-01-02');
    await refused(...words);
    expect([await keysIn('a.duckdb'), await keysIn('b.duckdb')]).toEqual([
      ['e2', 'e7'],
      ['e1', 'e2'],
    ]);
    expect(server.ids()).toEqual(['m1']);
  });

  it.each([
    // Held back: nobody is removed from the file of the list, and m2 is in the other place, too.
    { lost: 'm2, who is deleted and not purged', other: 'b.duckdb', code: 2, answer: SUCCESS },
    { lost: 'm2, who is undecided', other: undefined, code: 3, answer: UNCLEAR },
  ])('takes no confirmation for a list that has lost $lost', async ({ other, code, answer }) => {
    for (const name of ['a.duckdb', 'b.duckdb']) await load(name, [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')]);
    const query = queryOf('a.duckdb', "member NOT IN (SELECT member FROM events WHERE _key = 'e9')");
    const words = [...placeWords('a.duckdb', ...(other === undefined ? [] : [other])), ...BY_MEMBER, ...query];
    const confirmed = [...words, '--execute', '--confirm', JSON.parse((await run(words)).stdout).hash];
    const kept = readFileSync(at('b.duckdb'));
    answerTo = (id) => (id === 'm1' ? SUCCESS : answer);
    onDeletion = async () => writeFileSync(at('b.duckdb'), 'no database');
    const first = await run(confirmed);
    expect([first.code, first.stderr]).toEqual([code, expect.anything()]);
    writeFileSync(at('b.duckdb'), kept);
    await load('a.duckdb', [person('e9', 'u2', 'm2')], '2026-01-02');
    const requests = server.ids().length;
    const second = await run(confirmed);
    expect([second.code, second.stderr]).toEqual([2, expect.stringContaining('is not what was confirmed')]);
    expect([server.ids().length, await keysIn('b.duckdb')]).toEqual([requests, ['e1', 'e2']]);
  });

  it('is refused before anything is done for a list that is read from a copy for readers of a location', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')], DAY, { copy: at('copy.duckdb') });
    symlinkSync(at('copy.duckdb'), at('link.duckdb'));
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER, ...queryOf('link.duckdb', 'true')];
    expect(await run(words)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/link\.duckdb is a copy for readers of \S+a\.duckdb.*give --duckdb \S+a\.duckdb/),
    });
  });

  it('warns of people whom the suppression list cannot hold, since no row has them yet', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    const list = ['--suppression-file', at('suppressed.jsonl')];
    const both = await forget(['m1', 'm9'], ...placeWords('a.duckdb'), ...BY_MEMBER, ...list);
    const warning = /df_unified_id of 1 of these IDs, by which alone .* Unless an earlier run has listed them, a later/;
    expect([both.code, both.stderr]).toEqual([0, expect.stringMatching(warning)]);
    writeFileSync(at('map.csv'), 'external_id,df_unified_id\nm9,u9\n');
    const mapped = [...placeWords('a.duckdb'), '--mapping', at('map.csv'), ...list];
    expect((await run(['--id', 'm9', ...mapped])).stderr).not.toContain('by which alone');
    expect((await run(['--id', 'm8', ...mapped])).stderr).toContain('df_unified_id of 1 of these IDs, by which alone');
    const unlisted = await run(['--id', 'm8', ...placeWords('a.duckdb'), ...BY_MEMBER]);
    expect(unlisted.stderr).not.toContain('by which alone');
  });

  it.each<[string, ColumnType, string]>([
    ['a.duckdb', 'double', '1.50'],
    ['a.duckdb', 'boolean', 'TRUE'],
    ['a.duckdb', 'datetime', '2026-01-02 03:04:05'],
    ['parquet', 'double', '1.50'],
  ])('refuses a suppression list for %s where df_unified_id is a %s', async (name, type, unified) => {
    await load(name, [person('e1', unified, 'm1')], DAY, { types: new Map([['df_unified_id', type]]) });
    const words = ['--id', 'm1', ...placeWords(name), ...BY_MEMBER];
    const list = ['--suppression-file', at('suppressed.jsonl')];
    expect(await run([...words, ...list])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(`holds df_unified_id as ${type}, .* the suppression list`),
    });
    expect([existsSync(at('suppressed.jsonl')), (await run(words)).code]).toEqual([false, 0]);
    // Nobody whom the list would have to hold.
    expect((await run(['--id', 'm2', ...placeWords(name), ...BY_MEMBER, ...list])).code).toBe(0);
    // What the message says to do.
    await load(name, [person('e1', unified, 'm1')]);
    expect((await forget(['m1'], ...placeWords(name), ...BY_MEMBER, ...list)).code).toBe(0);
    const { isSuppressed } = loadSuppression(at('suppressed.jsonl'), new Secret(ENV.DFINERY_SUPPRESSION_KEY));
    expect(isSuppressed(Buffer.from(unified), 0, unified.length)).toBe(true);
  });

  it('lists people by a df_unified_id of whole numbers, which have one spelling', async () => {
    await load('a.duckdb', [person('e1', '15', 'm1')], DAY, { types: new Map([['df_unified_id', 'long']]) });
    const list = ['--suppression-file', at('suppressed.jsonl')];
    expect((await forget(['m1'], ...placeWords('a.duckdb'), ...BY_MEMBER, ...list)).code).toBe(0);
    const { isSuppressed } = loadSuppression(at('suppressed.jsonl'), new Secret(ENV.DFINERY_SUPPRESSION_KEY));
    expect(isSuppressed(Buffer.from('15'), 0, 2)).toBe(true);
  });

  it.each([
    ['{"external_id":"m1","df_unified_id":7}', /^.*Row 2 of \S+ holds a value of df_unified_id that is no text/],
    ['{"external_id":1,"df_unified_id":"7"}', /^.*Row 2 of \S+ holds a value of external_id that is no text/],
  ])('is refused for a mapping with a value that is no text: %s', async (line, sentence) => {
    await load('a.duckdb', [person('e1', '7', 'm1')]);
    writeFileSync(at('map.jsonl'), `{"external_id":"m2","df_unified_id":null}\n${line}\n`);
    const words = ['--id', 'm1', ...placeWords('a.duckdb'), '--mapping', at('map.jsonl')];
    const { code, stderr } = await run(words);
    expect([code, stderr]).toEqual([2, expect.stringMatching(sentence)]);
    writeFileSync(at('map.jsonl'), '{"external_id":"m1","unified_id":"7"}\n');
    expect(await run(words)).toMatchObject({ code: 2, stderr: expect.stringContaining('has df_unified_id: nothing') });
  });

  it('is open in the proof where the run that deleted the person ended before it', async () => {
    for (const name of ['a.duckdb', 'b.duckdb']) await load(name, [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')]);
    answerTo = (id) => (id === 'm1' ? SUCCESS : { ...REJECTED, code: '40201' });
    const words = [...placeWords('a.duckdb', 'b.duckdb'), ...BY_MEMBER];
    expect((await forget(['m1', 'm2'], ...words)).code).toBe(2);
    const proofOf = async (id: string) => {
      const words = ['forget', '--proof', id, '--ledger-dir', at('ledger')];
      const [{ stdout }, { stdout: text }] = [await runHere([...words, '--json']), await runHere(words)];
      return { ...JSON.parse(stdout), text };
    };
    const notBegun = { outcome: 'open', counts: { people: 0, rows: 0 }, unreached: [expect.any(String)], line: 1 };
    const places = ['a.duckdb', 'b.duckdb'].map((name) => ({ target: `duckdb ${at(name)}` }));
    expect(await proofOf('m1')).toMatchObject({
      erased: true,
      purges: places.map((place) => ({ ...place, ...notBegun })),
      text: expect.stringMatching(/purge open {2}duckdb \S+a\.duckdb: 0 rows of 0 people removed/),
    });
    expect(await proofOf('m2')).toMatchObject({ erased: false, purges: [] });
    answerTo = () => SUCCESS;
    expect((await forget(['m1', 'm2'], ...words)).code).toBe(0);
    const outcomes = (await proofOf('m1')).purges.map(({ outcome }: { outcome: string }) => outcome);
    expect(outcomes).toEqual(['open', 'open', 'done', 'done']);
    expect((await proofOf('m2')).purges.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['done', 'done']);
  });

  it('is open in the proof where it broke off without a result', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    expect((await forget(['m1'], ...placeWords('a.duckdb'), ...BY_MEMBER)).code).toBe(0);
    const [name] = readdirSync(at('ledger')).filter((file) => file.endsWith('.jsonl'));
    const lines = readFileSync(join(at('ledger'), name), 'utf8').split('\n');
    const purging = lines.findIndex((line) => line.includes('"kind":"purging"'));
    writeFileSync(join(at('ledger'), name), `${lines.slice(0, purging + 1).join('\n')}\n`);
    const { stdout } = await runHere(['forget', '--proof', 'm1', '--ledger-dir', at('ledger'), '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      erased: true,
      purges: [{ outcome: 'open', counts: {}, line: purging + 1 }],
    });
  });

  it('purges each location once, also when a symbolic link leads to it', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    await load('lake', [person('e1', 'u1', 'm1')]);
    for (const name of ['a.duckdb', 'lake']) {
      const link = name.replace(/^\w+/, 'link');
      symlinkSync(at(name), at(link));
      const both = await run(['--id', 'm1', ...placeWords(name, link), ...BY_MEMBER]);
      expect([both.code, both.stderr]).toEqual([2, expect.stringMatching(/--purge names \w+ \S+ twice: a link/)]);
      const [plan, other] = [
        await run(['--id', 'm1', ...placeWords(name), ...BY_MEMBER]),
        await run(['--id', 'm1', ...placeWords(link), ...BY_MEMBER]),
      ];
      expect(JSON.parse(other.stdout).hash).toBe(JSON.parse(plan.stdout).hash);
    }
  });

  it('continues with the other locations when one fails, and the same list finishes it', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    await load('b.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')]);
    const kept = readFileSync(at('a.duckdb'));
    onDeletion = async () => writeFileSync(at('a.duckdb'), 'no database');
    const words = [...placeWords('a.duckdb', 'b.duckdb'), ...BY_MEMBER];
    const first = await forget(['m1'], ...words);
    expect(first.code).not.toBe(0);
    expect(first.report).toMatchObject({
      done: 1,
      places: [{ error: expect.any(String) }, { rows_removed: 1, error: null }],
    });
    expect(await keysIn('b.duckdb')).toEqual(['e2']);
    writeFileSync(at('a.duckdb'), kept);
    const second = await forget(['m1'], ...words);
    expect([second.code, second.report.done_before]).toEqual([0, 1]);
    expect(await keysIn('a.duckdb')).toEqual([]);
    expect(server.ids()).toEqual(['m1']);
  });

  it.each(['a hard link', 'no database'])(
    'once its people are deleted purges the other locations although one has %s, and names that one',
    async (obstacle) => {
      for (const name of ['a.duckdb', 'b.duckdb']) await load(name, [person('e1', 'u1', 'm1')]);
      const [first, second] = ['a.duckdb', 'b.duckdb'].map((name) => readFileSync(at(name)));
      const words = [...placeWords('a.duckdb', 'b.duckdb'), ...BY_MEMBER];
      const { hash } = JSON.parse((await run(['--id', 'm1', ...words])).stdout);
      const execute = () => run(['--id', 'm1', ...words, '--execute', '--confirm', hash]);
      const obstruct = () => {
        if (obstacle === 'no database') writeFileSync(at('a.duckdb'), 'no database');
        else linkSync(at('a.duckdb'), at('other'));
      };
      obstruct();
      expect([(await execute()).code, server.ids(), await keysIn('b.duckdb')]).toEqual([2, [], ['e1']]);
      rmSync(at('other'), { force: true });
      writeFileSync(at('a.duckdb'), first ?? '');
      onDeletion = async () => {
        obstruct();
        writeFileSync(at('b.duckdb'), 'no database');
      };
      expect((await execute()).code).toBe(2);
      writeFileSync(at('b.duckdb'), second ?? '');
      if (obstacle === 'no database') {
        const { code, stdout, stderr } = await run(['--id', 'm1', ...words]);
        expect([code, JSON.parse(stdout)]).toMatchObject([
          2,
          { hash, exit: 2, error: expect.stringContaining('a.duckdb') },
        ]);
        expect(stderr).toContain('a.duckdb');
      }
      const resumed = await execute();
      expect([resumed.code, JSON.parse(resumed.stdout).places]).toMatchObject([
        2,
        [{ error: expect.stringContaining('a.duckdb') }, { rows_removed: 1, error: null }],
      ]);
      expect(await keysIn('b.duckdb')).toEqual([]);
      rmSync(at('other'), { force: true });
      writeFileSync(at('a.duckdb'), first ?? '');
      expect([(await execute()).code, await keysIn('a.duckdb'), server.ids()]).toEqual([0, [], ['m1']]);
    },
  );

  it.each(['could not purge', 'did not come to purge'])(
    'names a location that an unfinished run %s, if it is not given again',
    async (how) => {
      for (const name of ['a.duckdb', 'b.duckdb']) await load(name, [person('e1', 'u1', 'm1')]);
      if (how === 'could not purge')
        onDeletion = async () => void (existsSync(at('other')) || linkSync(at('b.duckdb'), at('other')));
      else answerTo = (id) => (id === 'm1' ? SUCCESS : { ...REJECTED, code: '40201' });
      expect((await forget(['m1', 'm2'], ...placeWords('a.duckdb', 'b.duckdb'), ...BY_MEMBER)).code).toBe(2);
      [onDeletion, answerTo] = [async () => {}, () => SUCCESS];
      const { code, stderr } = await forget(['m1', 'm2'], ...placeWords('a.duckdb'), ...BY_MEMBER);
      expect([code, stderr]).toEqual([
        0,
        expect.stringMatching(/did not finish its purge of duckdb \S+b\.duckdb, which this one/),
      ]);
    },
  );

  it('looks people up at the moment of their removal: rows loaded during the deletion are removed too', async () => {
    for (const name of ['a.duckdb', 'lake']) await load(name, [person('e1', 'u1', 'm1')]);
    onDeletion = async () => {
      for (const name of ['a.duckdb', 'lake']) {
        await load(name, [person('e2', 'u9', 'm1'), person('e3', 'u9', ''), person('e4', 'u2', 'm2')], '2026-01-02');
      }
    };
    const list = ['--suppression-file', at('suppressed.jsonl')];
    const { report, plan } = await forget(['m1'], ...placeWords('a.duckdb', 'lake'), ...BY_MEMBER, ...list);
    expect(plan.places.map(({ rows }: { rows: number }) => rows)).toEqual([1, 1]);
    expect(report.places.map((place: { rows_removed: number }) => place.rows_removed)).toEqual([3, 3]);
    expect(await keysIn('a.duckdb')).toEqual(['e4']);
    expect(readFileSync(at('suppressed.jsonl'), 'utf8').trimEnd().split('\n')).toHaveLength(3);
  });

  it('covers only people whom the service has deleted, and suppresses nobody else', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2'), person('e3', 'u3', 'm3')]);
    answerTo = (id) => (id === 'm1' ? SUCCESS : id === 'm2' ? REJECTED : UNCLEAR);
    const list = ['--suppression-file', at('suppressed.jsonl')];
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER, ...list];
    const { report, code } = await forget(['m1', 'm2', 'm3'], ...words);
    expect(code).toBe(3);
    expect(report).toMatchObject({ done: 1, rejected: 1, undecided: 1, places: [{ people: 1, rows_removed: 1 }] });
    expect(await keysIn('a.duckdb')).toEqual(['e2', 'e3']);
    expect(readFileSync(at('suppressed.jsonl'), 'utf8').trimEnd().split('\n')).toHaveLength(2);
    // Within a day the same list asks for the undecided one alone.
    answerTo = () => SUCCESS;
    const again = await forget(['m1', 'm2', 'm3'], ...words);
    expect(again.report).toMatchObject({ done_before: 1, rejected_before: 1, done: 1, requests: 1 });
    expect(server.ids()).toEqual(['m1', 'm2', 'm3', 'm3', 'm3']);
    expect(await keysIn('a.duckdb')).toEqual(['e2']);
  });

  it('removes nobody whom the service rejected', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    answerTo = () => REJECTED;
    const { report, code, stderr } = await forget(['m1'], ...placeWords('a.duckdb'), ...BY_MEMBER);
    expect([code, report.done]).toEqual([2, 0]);
    expect(stderr).not.toContain('deleted at the service');
    expect(await keysIn('a.duckdb')).toEqual(['e1']);
  });

  it('with --purge-only covers a further location without a request, and is recorded in the ledger', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')]);
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER];
    const { report, plan, code } = await forget(['m1'], ...words, '--purge-only');
    expect(code).toBe(0);
    expect(report).toMatchObject({
      purge_only: true,
      requests: 0,
      done: 0,
      undecided: 0,
      places: [{ rows_removed: 1 }],
    });
    expect(server.ids()).toEqual([]);
    expect(lines().map(({ kind }) => kind)).toEqual(['open', 'purge_only', 'purging', 'purge', 'close']);
    const other = await run(['--file', at('ids.txt'), ...words, '--execute', '--confirm', plan.hash]);
    expect([other.code, server.ids()]).toEqual([2, []]);
    const proof = JSON.parse(
      (await runHere(['forget', '--proof', 'm1', '--ledger-dir', at('ledger'), '--json'])).stdout,
    );
    expect(proof).toMatchObject({ erased: false, purges: [{ counts: { rows: 1 } }] });
  });

  it('with --purge-only does not count as a deletion: undecided ids are still requested alone', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')]);
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER];
    answerTo = (id) => (id === 'm1' ? SUCCESS : UNCLEAR);
    expect((await forget(['m1', 'm2'], ...words)).code).toBe(3);
    expect((await forget(['m1', 'm2'], ...words, '--purge-only')).report).toMatchObject({
      done_before: 0,
      requests: 0,
    });
    answerTo = () => SUCCESS;
    const { report, code } = await forget(['m1', 'm2'], ...words);
    expect(report).toMatchObject({ done_before: 1, done: 1, requests: 1 });
    expect([code, server.ids()]).toEqual([0, ['m1', 'm2', 'm2', 'm2']]);
  });

  it('is warned of in the plan where a location has the data of another service, whose people have the same ids', async () => {
    const sentences = async (baseUrl: string, name: string) => {
      await load(name, [{ id: 'a', member: 'erna' }], DAY, { service: serviceHash({ baseUrl, serviceId: 's' }) });
      const plan = await run(['--id', 'erna', ...placeWords(name), ...BY_MEMBER]);
      expect(plan.code, plan.stderr).toBe(0);
      return plan.stderr.split('\n').filter((line) => line.includes('the data of another service'));
    };
    for (const kind of ['.duckdb', '']) {
      expect(await sentences(server.url, `same${kind}`)).toEqual([]);
      expect(await sentences('https://other.example', `other${kind}`)).toEqual([
        expect.stringContaining(`${at(`other${kind}`)} holds the data of another service`),
      ]);
    }
  });

  it('does not begin, and no id is deleted, when the suppression list is not writable', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    mkdirSync(at('suppressed.jsonl.lock'));
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER, '--suppression-file', at('suppressed.jsonl')];
    const all = ['--id', 'm1', ...words];
    const { hash } = JSON.parse((await run(all)).stdout);
    const { code, stderr } = await run([...all, '--execute', '--confirm', hash]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('suppressed.jsonl.lock')]);
    expect([server.ids(), await keysIn('a.duckdb')]).toEqual([[], ['e1']]);
  });

  it('stops before any request for more people than --max-people, and for shared people', async () => {
    await load('a.duckdb', [
      ...Array.from({ length: 11 }, (_, n) => person(`e${n}`, `u${n}`, 'm1')),
      person('s1', 'shared', 'm2'),
      person('s2', 'shared', 'm3'),
    ]);
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER];
    const many = await forget(['m1'], ...words);
    expect([many.code, many.report.guard, many.report.error]).toEqual([
      5,
      expect.stringContaining('holds 11 people of these ids, more than --max-people allows (10)'),
      expect.stringContaining('--max-people 11'),
    ]);
    const shared = await forget(['m2'], ...words);
    expect([shared.code, shared.report.error]).toEqual([5, expect.stringContaining('--allow-shared')]);
    expect([server.ids(), await keysIn('a.duckdb')]).toEqual([[], expect.objectContaining({ length: 13 })]);
    expect((await forget(['m1'], ...words, '--max-people', '11')).code).toBe(0);
    expect((await forget(['m2'], ...words, '--allow-shared')).code).toBe(0);
    expect(await keysIn('a.duckdb')).toEqual([]);
  });

  it('is confirmed by a hash of its locations, its column and the content of the mapping', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1'), person('e2', 'u2', 'm2')]);
    const mapping = (people: string) => {
      writeFileSync(at('map.csv'), `external_id,df_unified_id\n${people}\n`);
      return [...placeWords('a.duckdb'), '--mapping', at('map.csv')];
    };
    const hashOf = async (...words: string[]) => JSON.parse((await run(['--id', 'm1', ...words])).stdout).hash;
    const planned = await hashOf(...mapping('m1,u1'));
    const swapped = await run(['--id', 'm1', ...mapping('m1,u2'), '--execute', '--confirm', planned]);
    expect([swapped.code, server.ids(), await keysIn('a.duckdb')]).toEqual([2, [], ['e1', 'e2']]);
    expect(await hashOf(...mapping('m7,u7\nm1,u1'))).toBe(planned);
    const others = [await hashOf(), await hashOf(...placeWords('a.duckdb'), ...BY_MEMBER)];
    others.push(await hashOf(...placeWords('a.duckdb'), '--purge-column', 'df_unified_id'));
    expect(new Set([planned, ...others]).size).toBe(4);
  });

  it('suppresses people of the mapping without rows, and counts their ids', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    writeFileSync(at('map.csv'), 'external_id,df_unified_id\nm1,u1\nm2,u2\nm3,null\n');
    const list = ['--suppression-file', at('suppressed.jsonl')];
    const words = [...placeWords('a.duckdb'), '--mapping', at('map.csv'), ...list];
    const { report } = await forget(['m1', 'm2', 'm3'], ...words);
    expect(report.places).toMatchObject([{ people: 1, rows_removed: 1, ids_without_rows: 2, row_numbers: [2, 3] }]);
    expect(readFileSync(at('suppressed.jsonl'), 'utf8').trimEnd().split('\n')).toHaveLength(3);
  });

  it('empties every configured spool folder', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    const folder = join(at('elsewhere'), `dfinery-elt-${'0'.repeat(16)}`);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const kind of ['csv', 'json']) writeFileSync(join(folder, `r${'0'.repeat(16)}-000001.${kind}`), 'u1');
    configure({ spool_dir: at('elsewhere') });
    expect((await forget(['m1'], ...placeWords('a.duckdb'), ...BY_MEMBER)).code).toBe(0);
    expect(existsSync(folder) ? readdirSync(folder) : []).toEqual([]);
  });

  it('does not end well while a download of a dead run cannot be removed, and names it', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    const folder = join(at('spool'), `dfinery-elt-${'0'.repeat(16)}`);
    // A folder cannot be removed as a file is.
    const name = join(folder, `r${'0'.repeat(16)}-000001.csv`);
    mkdirSync(name, { recursive: true, mode: 0o700 });
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER];
    const { code, report } = await forget(['m1'], ...words);
    expect([code, report.error]).toEqual([3, expect.stringContaining(name)]);
    expect([await keysIn('a.duckdb'), lines().at(-1)?.kind]).toEqual([[], 'purge']);
    rmSync(name, { recursive: true });
    const again = await forget(['m1'], ...words);
    expect([again.code, again.report.requests, lines().at(-1)?.kind]).toEqual([0, 0, 'close']);
  });

  it('names a spool directory that cannot be read any more when the people are deleted', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    onDeletion = async () => {
      rmSync(at('spool'), { recursive: true });
      symlinkSync('spool', at('spool'));
    };
    const { report } = await forget(['m1'], ...placeWords('a.duckdb'), ...BY_MEMBER);
    expect([report.unreached, await keysIn('a.duckdb')]).toEqual([[expect.stringContaining(at('spool'))], []]);
  });

  it('purges the places also where a lease of a spool folder cannot be read, and names the folder', async () => {
    await load('a.duckdb', [person('e1', 'u1', 'm1')]);
    const folder = join(at('spool'), `dfinery-elt-${'0'.repeat(16)}`);
    const lease = join(folder, `r${'0'.repeat(16)}.lease`);
    mkdirSync(folder, { mode: 0o700 });
    symlinkSync('/nowhere', lease);
    const words = [...placeWords('a.duckdb'), ...BY_MEMBER];
    const { code, report } = await forget(['m1'], ...words);
    expect([code, report.error]).toEqual([3, expect.stringContaining(folder)]);
    expect([await keysIn('a.duckdb'), lines().at(-1)?.kind]).toEqual([[], 'purge']);
    rmSync(lease);
    expect((await forget(['m1'], ...words)).code).toBe(0);
  });

  it('reports unknown options and environment variables in its JSON', async () => {
    const env = { ...ENV, DFINERY_NONSENSE: '1' };
    for (const command of ['forget', 'person']) {
      const wrong = await runHere([command, '--id', 'm1', '--jsno', '--json'], { env: ENV });
      expect(JSON.parse(wrong.stdout)).toMatchObject({ exit: 2, error: expect.stringContaining('jsno') });
      const { code, stdout } = await runHere([command, '--id', 'm1', '--json'], { env });
      expect([code, JSON.parse(stdout)]).toMatchObject([2, { exit: 2, error: expect.stringContaining('NONSENSE') }]);
    }
  });

  it('reports an early failure in its JSON', async () => {
    const { code, stdout } = await run(['--id', 'm1', '--purge', 'duckdb', at('none.duckdb'), ...BY_MEMBER]);
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'failure',
      exit: 2,
      error: expect.stringContaining('none.duckdb'),
    });
  });
});

it('--query reports an error of the engine without any cell', async () => {
  await load('a.duckdb', [person('e1', 'u1', 'secret-member')]);
  const sql = 'SELECT CAST(CAST(member AS INTEGER) AS VARCHAR) FROM events';
  const { code, stdout, stderr } = await run(['--query', sql, '--duckdb', at('a.duckdb')]);
  expect([code, `${stdout}${stderr}`.includes('secret-member')]).toEqual([2, false]);
  expect(stderr).toContain('Conversion Error');
});

it('--forget-copy removes a copy of a place from the list of copies', async () => {
  await load('lake', [person('e1', 'u1', 'm1')]);
  const { code, stderr } = await run(['--id', 'm1', ...placeWords('lake'), ...BY_MEMBER, '--forget-copy', at('copy')]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('exactly one duckdb FILE')]);
  await load('a.duckdb', [person('e1', 'u1', 'm1')], DAY, { copy: at('copy') });
  const done = await run(['--id', 'm1', ...placeWords('a.duckdb'), ...BY_MEMBER, '--forget-copy', at('copy')]);
  expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('is still there')]);
});

it('names a copy for readers that has a second hard link, and why it is kept', async () => {
  await load('a.duckdb', [person('e1', 'u1', 'm1')], DAY, { copy: at('copy') });
  linkSync(at('copy'), at('other'));
  const { code, report } = await forget(['m1'], ...placeWords('a.duckdb'), ...BY_MEMBER);
  const why = `${at('copy')} has another name (a hard link)`;
  expect([code, report.error]).toEqual([3, expect.stringContaining(why)]);
  expect([await keysIn('a.duckdb'), await keysIn('copy')]).toEqual([[], ['e1']]);
});

it('is not done while a copy for readers, into which somebody has loaded, is a database of its own', async () => {
  await load('a.duckdb', [person('e1', 'u1', 'm1')], DAY, { copy: at('copy.duckdb') });
  await load('copy.duckdb', [person('e2', 'u2', 'm2')], '2026-01-02');
  const { code, report } = await forget(['m1'], ...placeWords('a.duckdb'), ...BY_MEMBER);
  expect([code, report.error]).toEqual([3, expect.stringContaining('copy.duckdb exists and is not a copy')]);
  expect([await keysIn('a.duckdb'), await keysIn('copy.duckdb')]).toEqual([[], ['e1', 'e2']]);
  expect([report.purged, lines().at(-1)]).toMatchObject([undefined, { kind: 'purge', outcome: 'open' }]);
});

it('names what readers of a copy for readers have spilled, until it is gone', async () => {
  await load('a.duckdb', [person('e1', 'u1', 'm1')], DAY, { copy: at('copy') });
  const spilled = at('copy.tmp-0123456789ab');
  mkdirSync(spilled);
  writeFileSync(join(spilled, 'duckdb_temp_storage_DEFAULT-0.tmp'), 'm1');
  const words = [...placeWords('a.duckdb'), ...BY_MEMBER];
  const { code, report } = await forget(['m1'], ...words);
  expect([code, report.error, await keysIn('copy')]).toEqual([3, expect.stringContaining(spilled), []]);
  rmSync(spilled, { recursive: true });
  expect((await forget(['m1'], ...words)).code).toBe(0);
});

it.each(['a.duckdb'])(
  'of a restored plain copy, %s, names the copies for readers that it cannot replace',
  async (name) => {
    await load(name, [person('e1', 'u1', 'm1')], DAY, { copy: at('copy') });
    copyFileSync(at(name), at('backup'));
    rmSync(at(name));
    copyFileSync(at('backup'), at(name));
    const { code, report } = await forget(['m1'], ...placeWords(name), ...BY_MEMBER);
    expect([code, report.unreached]).toEqual([0, [expect.stringContaining(at('copy'))]]);
  },
);

describe('person', () => {
  it('writes every row of the people, found as by a purge, and a line of the ledger', async () => {
    await load('a.duckdb', [
      person('e1', 'u1', 'm1'),
      { id: 'e2', df_unified_id: 'u1', note: 'no member' },
      person('e3', 'u2', 'm2'),
    ]);
    await load('lake', [person('e9', 'u7', 'm1')]);
    const where = ['--in', 'duckdb', at('a.duckdb'), '--in', 'parquet', at('lake'), '--by-column', 'member'];
    const words = ['person', '--id', 'm1', ...where, '--config', at('config.json'), '-o', at('about.jsonl')];
    const done = await runHere([...words, '--spool-dir', at('spool')]);
    expect(done.code, done.stderr).toBe(0);
    const rows = readFileSync(at('about.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(rows.map(({ place, table, row }) => [place, table, row._key]).sort()).toEqual([
      [`duckdb ${at('a.duckdb')}`, 'events', 'e1'],
      [`duckdb ${at('a.duckdb')}`, 'events', 'e2'],
      [`parquet ${at('lake')}`, 'events', 'e9'],
    ]);
    expect(rows.find(({ row }) => row._key === 'e1').row).not.toHaveProperty('note');
    expect(JSON.stringify(rows)).not.toContain('_dfinery_file');
    expect(statSync(at('about.jsonl')).mode & 0o777).toBe(0o600);
    expect(lines().map(({ kind }) => kind)).toEqual(['open', 'access', 'close']);
    expect((await runHere(words)).code).toBe(2);
    rmSync(at('about.jsonl'));
    const refused = await runHere(['person', '--id', 'null', ...where.slice(0, 3), '--by-column', 'member']);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining('1 of 1 rows are refused and not looked for'),
    ]);
    writeFileSync(at('ids.txt'), 'm2\nnull\n');
    const some = ['person', '--file', at('ids.txt'), ...where.slice(0, 3), '--by-column', 'member'];
    expect(await runHere(some)).toMatchObject({ code: 0, stderr: expect.stringContaining('1 of 2 rows are refused') });
    const shown = await runHere(['person', '--id', 'm2', ...where.slice(0, 3), '--by-column', 'member']);
    expect(JSON.parse(shown.stdout)).toMatchObject({ table: 'events', row: { df_unified_id: 'u2' } });
  });
});
