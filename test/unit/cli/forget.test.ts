import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DeletionServer, startDeletionServer } from '../../support/deletion/deletions.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let dir = '';
let server: DeletionServer;
const at = (name: string) => join(dir, name);

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-forget-'));
  server = await startDeletionServer();
  const config = { base_url: server.url, service_id: 's', import_token: 't', ledger_dir: at('ledger') };
  writeFileSync(at('config.json'), JSON.stringify(config));
});
afterEach(async () => {
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});

const SECRETS: Readonly<Record<string, string>> = { DFINERY_SUPPRESSION_KEY: 'a suppression key of 32 characters' };

async function forget(...argv: string[]) {
  const { code, stdout, stderr } = await runHere(['forget', '--config', at('config.json'), ...argv], { env: SECRETS });
  return { code, result: stdout.trimEnd(), said: stderr.trimEnd() };
}

async function database(...statements: string[]): Promise<string> {
  const instance = await DuckDBInstance.create(at('people.duckdb'));
  const connection = await instance.connect();
  for (const sql of statements) await connection.run(sql);
  connection.closeSync();
  instance.closeSync();
  return at('people.duckdb');
}

describe('forget, from a query', () => {
  it('takes texts unchanged, and no other value as an id', async () => {
    const file = await database(
      "CREATE TABLE p AS SELECT * FROM (VALUES ('007', 7, true), (NULL, 8, false)) t(id, n, b)",
    );
    const plan = await forget('--query', 'SELECT id FROM p', '--duckdb', file, '--json');
    expect(JSON.parse(plan.result)).toMatchObject({ received: 2, ids: 1, refused: { missing: 1 } });
    for (const sql of ['SELECT n FROM p', 'SELECT b FROM p', 'SELECT count(*) FROM p', 'SELECT [id] FROM p']) {
      expect(await forget('--query', sql, '--duckdb', file), sql).toMatchObject({
        code: 2,
        said: expect.stringContaining('AS VARCHAR'),
      });
    }
  });

  it('refuses JSON, whose texts are quoted', async () => {
    const file = await database(`CREATE TABLE p AS SELECT '{"id":"007"}' AS r`);
    const plan = await forget('--query', "SELECT r->>'$.id' FROM p", '--duckdb', file, '--json');
    expect(JSON.parse(plan.result)).toMatchObject({ received: 1, ids: 1 });
    const refused = { code: 2, said: expect.stringContaining('->>') };
    expect(await forget('--query', "SELECT r->'$.id' FROM p", '--duckdb', file)).toMatchObject(refused);
  });
});

describe('forget, with a query that is no SELECT', () => {
  it.each([
    ["COPY p TO '%'", 'not one SELECT'],
    ["SELECT id FROM p; COPY p TO '%'", 'not one SELECT'],
    ['DELETE FROM p RETURNING id', 'not one SELECT'],
    ["EXPLAIN ANALYZE COPY p TO '%'", 'not one SELECT'],
    ["ATTACH '%' AS other", 'not one SELECT'],
    ["SET memory_limit = '1GB'", 'not one SELECT'],
    ['SHOW TABLES', 'not one SELECT'],
    ['/* SELECT */ PRAGMA database_list', 'not one SELECT'],
    [' -- nothing', 'not usable'],
    ["SELECT * FROM read_text('%')", 'not usable'],
    ['SELECT id, id FROM p', '2 columns'],
  ])('runs no statement: %s', async (sql, sentence) => {
    const file = await database("CREATE TABLE p AS SELECT 'me' AS id");
    const before = readFileSync(file);
    const found = await forget('--query', sql.replaceAll('%', file), '--duckdb', file);
    expect(found).toMatchObject({ code: 2, said: expect.stringContaining(sentence) });
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

describe('forget, from a file', () => {
  it('refuses an ID of the command line that is no UTF-8, and takes the same character from a file', async () => {
    expect(await forget('--id', 'k\ufffd')).toMatchObject({
      code: 2,
      said: expect.stringContaining('is not valid UTF-8'),
    });
    const proof = await forget('--proof', 'k\ufffd', '--ledger-dir', at('ledger'));
    expect(proof).toMatchObject({ code: 2, said: expect.stringContaining('is not valid UTF-8') });
    writeFileSync(at('list.txt'), 'k\ufffd\n');
    expect((await forget('--file', at('list.txt'))).code).toBe(0);
  });

  it('reads a CSV of any file name if a column is given', async () => {
    writeFileSync(at('people.txt'), 'n,external_id\n1,a\n2,b\n');
    const words = ['--file', at('people.txt'), '--column', 'external_id', '--json'];
    const plan = JSON.parse((await forget(...words)).result);
    expect(plan).toMatchObject({ received: 2, ids: 2 });
    expect((await forget(...words, '--execute', '--confirm', plan.hash)).code).toBe(0);
    expect(server.ids().sort()).toEqual(['a', 'b']);
    expect((await forget('--id', 'a', '--column', 'external_id')).code).toBe(2);
  });
});

describe('forget, with a ledger in a bucket', () => {
  it('is refused before anybody is deleted: it would be a folder called s3:', async () => {
    const config = { base_url: server.url, service_id: 's', import_token: 't', ledger_dir: 's3://bucket/ledger' };
    writeFileSync(at('config.json'), JSON.stringify(config));
    const plan = JSON.parse((await forget('--id', 'a', '--json')).result);
    const done = await forget('--id', 'a', '--execute', '--confirm', plan.hash);
    expect(done).toMatchObject({ code: 2, said: expect.stringMatching(/s3:\/\/bucket\/ledger is an address/) });
    expect(server.ids()).toEqual([]);
  });
});

describe('forget, asked for a proof', () => {
  it('covers the configured service alone, and names it', async () => {
    const plan = JSON.parse((await forget('--id', 'a', '--json')).result);
    const done = await forget('--id', 'a', '--execute', '--confirm', plan.hash);
    expect(done.result).toMatch(/^ledger head: [0-9a-f]{64}$/m);
    const proof = ['--proof', 'a', '--ledger-dir', at('ledger')];
    expect(await forget(...proof)).toMatchObject({
      code: 0,
      result: expect.stringContaining(`service s at ${server.url}`),
    });
    expect((await forget('--proof', 'a')).code).toBe(0);
    expect((await forget('--proof', 'a', '--ledger-dir', at('elsewhere'))).code).not.toBe(0);
    const other = { base_url: server.url, service_id: 'other', import_token: 't' };
    writeFileSync(at('config.json'), JSON.stringify(other));
    expect(await forget(...proof)).toMatchObject({
      code: 1,
      result: expect.stringContaining('no erasure of this id: service other'),
    });
  });

  it('or for a verification with --head, detects a truncated ledger', async () => {
    const plan = JSON.parse((await forget('--id', 'a', '--json')).result);
    await forget('--id', 'a', '--execute', '--confirm', plan.hash);
    const verdict = async (...more: string[]) => await forget('--verify-ledger', at('ledger'), ...more, '--json');
    const whole = await verdict();
    const { ok, head } = JSON.parse(whole.result);
    expect([whole.code, ok]).toEqual([0, true]);
    expect((await verdict('--head', head)).code).toBe(0);
    const cut = await verdict('--head', 'a'.repeat(head.length));
    expect([cut.code, JSON.parse(cut.result).ok]).toEqual([1, false]);
  });

  it('says that a broken ledger proves nothing', async () => {
    for (const id of ['a', 'b']) {
      const { hash } = JSON.parse((await forget('--id', id, '--json')).result);
      await forget('--id', id, '--execute', '--confirm', hash);
    }
    const [first] = readdirSync(at('ledger'))
      .filter((name) => name.endsWith('.jsonl'))
      .sort();
    writeFileSync(
      join(at('ledger'), first),
      readFileSync(join(at('ledger'), first), 'utf8').replace('"ids":1', '"ids":2'),
    );
    const proof = await forget('--proof', 'b', '--ledger-dir', at('ledger'));
    expect(proof).toMatchObject({ code: 1, result: expect.stringContaining('proves nothing') });
    expect(proof.result).not.toContain('done');
  });
});

describe('forget, stopped by a guard', () => {
  it('deletes nobody, exits with 5, and prints its report', async () => {
    writeFileSync(at('ids.txt'), Array.from({ length: 501 }, (_, i) => `p${i}\n`).join(''));
    const plan = await forget('--file', at('ids.txt'), '--json');
    const { hash } = JSON.parse(plan.result);
    const ended = await forget('--file', at('ids.txt'), '--json', '--execute', '--confirm', hash);
    expect(ended.code).toBe(5);
    expect(JSON.parse(ended.result)).toMatchObject({
      mode: 'dry_run',
      ids: 501,
      requests: 0,
      guard: expect.stringContaining('501'),
      hash,
    });
    expect(server.ids()).toEqual([]);
  });
});

describe('forget, with a purge', () => {
  let fixture: DuckDbFixture;
  beforeEach(() => {
    fixture = new DuckDbFixture();
  });
  afterEach(() => fixture.close());

  const target = async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'e1', df_unified_id: 'u1' }]))]);
    return fixture.file;
  };
  const mapping = (text: string) => {
    writeFileSync(at('mapping.csv'), text);
    return at('mapping.csv');
  };

  it('deletes nobody when a location or an output is invalid', async () => {
    const file = await target();
    const people = mapping('external_id,df_unified_id\na,u1\n');
    writeFileSync(at('other.txt'), 'something else\n');
    const argv: readonly (readonly string[])[] = [
      ['--purge', 'duckdb', at('none.duckdb'), '--mapping', people],
      ['--purge', 'duckdb', at('other.txt'), '--mapping', people],
      ['--purge', 'parquet', dir, '--mapping', people],
      ['--purge', 'duckdb', file, '--purge-column', 'nope'],
      ['--purge', 'duckdb', file, '--mapping', people, '--suppression-file', at('other.txt')],
      ['--purge', 'duckdb', file, '--mapping', people, '--suppression-file', dir],
      ['--suppression-file', at('list.jsonl')],
      ['--mapping', people],
    ];
    const plan = await forget('--id', 'a', '--json');
    const confirmed = ['--execute', '--confirm', String(JSON.parse(plan.result).hash)];
    for (const words of argv) {
      expect(await forget('--id', 'a', ...words), words.join(' ')).toMatchObject({ code: 2 });
      expect(await forget('--id', 'a', ...confirmed, ...words), words.join(' ')).toMatchObject({ code: 2 });
    }
    expect(server.ids()).toEqual([]);
    expect(readFileSync(at('other.txt'), 'utf8')).toBe('something else\n');
    expect(existsSync(at('list.jsonl'))).toBe(false);
  });

  it('deletes, purges and suppresses the people of the mapping', async () => {
    const file = await target();
    const people = mapping('external_id,df_unified_id\na,u1\n');
    const words = ['--id', 'a', '--json', '--purge', 'duckdb', file, '--mapping', people, '--spool-dir', at('spool')];
    const listed = [...words, '--suppression-file', at('list.jsonl')];
    const plan = await forget(...listed);
    const { hash, people_to_purge } = JSON.parse(plan.result);
    expect(people_to_purge).toBe(1);
    const ended = await forget(...listed, '--execute', '--confirm', hash);
    expect(ended.code, ended.said).toBe(0);
    expect(JSON.parse(ended.result)).toMatchObject({ done: 1, purged: { people: 1, rows: 1 } });
    expect(server.ids()).toEqual(['a']);
    expect(await fixture.query('SELECT count(*) AS n FROM events')).toEqual([{ n: '0' }]);
    expect(readFileSync(at('list.jsonl'), 'utf8').trimEnd().split('\n')).toHaveLength(2);
  });

  it('reports that nobody was found', async () => {
    const people = mapping('external_id,df_unified_id\nb,u1\na,\n');
    const plan = await forget('--id', 'a', '--json', '--purge', 'duckdb', await target(), '--mapping', people);
    expect(plan).toMatchObject({ code: 0, said: expect.stringContaining('None of these IDs was found by --mapping') });
    expect(JSON.parse(plan.result)).toMatchObject({ people_to_purge: 0 });
  });

  it.each([
    [
      'a generated column',
      'CREATE TABLE mine (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1)); INSERT INTO mine VALUES (1)',
    ],
    [
      'a foreign key',
      `CREATE TABLE theirs (a INTEGER PRIMARY KEY); CREATE TABLE mine (a INTEGER REFERENCES theirs (a));
       INSERT INTO theirs VALUES (1); INSERT INTO mine VALUES (1)`,
    ],
  ])('deletes nobody when %s prevents the file from being rewritten', async (_what, sql) => {
    const file = await target();
    await fixture.query(sql);
    const words = [
      '--id',
      'a',
      '--json',
      '--purge',
      'duckdb',
      file,
      '--mapping',
      mapping('external_id,df_unified_id\na,u1\n'),
    ];
    const { hash } = JSON.parse((await forget(...words)).result);
    const ended = await forget(...words, '--execute', '--confirm', hash);
    expect(ended).toMatchObject({
      code: 2,
      said: expect.stringMatching(/cannot be written anew.*mine.*Nothing was changed/),
    });
    expect(server.ids()).toEqual([]);
    expect(await fixture.query('SELECT count(*) AS n FROM events')).toEqual([{ n: '1' }]);
  });

  it('names what it cannot reach, and counts the ids without a row', async () => {
    const file = await target();
    await fixture.query("CREATE TABLE notes AS SELECT 'a' AS who");
    mkdirSync(at('spool'));
    mkdirSync(join(at('spool'), 'dfinery-elt-0123456789abcdef'));
    chmodSync(join(at('spool'), 'dfinery-elt-0123456789abcdef'), 0o755);
    writeFileSync(at('ids.txt'), 'a\nb\nc\n');
    const people = mapping('external_id,df_unified_id\na,u1\nz,u2\n');
    const words = [
      '--file',
      at('ids.txt'),
      '--json',
      '--purge',
      'duckdb',
      file,
      '--mapping',
      people,
      '--spool-dir',
      at('spool'),
    ];
    const plan = JSON.parse((await forget(...words)).result);
    expect(plan).toMatchObject({ people_to_purge: 1, ids_without_match: 2 });
    const ended = await forget(...words, '--execute', '--confirm', plan.hash);
    expect(ended.code, ended.said).toBe(0);
    expect(JSON.parse(ended.result)).toMatchObject({ ids_without_match: 2, purged: { rows: 1 } });
    expect(ended.said).toMatch(/tables, types or views that are not ours \(notes\)/);
    expect(ended.said).toMatch(/out of reach.*dfinery-elt-0123456789abcdef/);
  });
});
