import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DeletionServer, startDeletionServer } from '../../support/deletion/deletions.ts';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { query } from '../../support/targets/query.ts';

let fixture: CliFixture;
let copy = '';
beforeEach(async () => {
  fixture = await CliFixture.start();
  copy = join(fixture.dir, 'copy.duckdb');
});
afterEach(() => fixture.close());

const publish = (config: Record<string, unknown> = {}, to = copy) => fixture.sync(config, ['--publish', to]);
const rowsIn = async (file: string) => Number((await query(file, 'SELECT count(*) AS n FROM events'))[0].n);

describe('a published copy', () => {
  it('is complete, keeps its file mode, and leaves readers of the previous copy undisturbed', async () => {
    const first = await publish({ end_date: daysBack(4) });
    expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('copy for readers')]);
    const before = await rowsIn(copy);
    chmodSync(copy, 0o644);
    const instance = await DuckDBInstance.create(copy, { access_mode: 'READ_ONLY' });
    const reader = await instance.connect();
    expect((await publish()).code).toBe(0);
    const still = await reader.runAndReadAll('SELECT count(*) AS n FROM events');
    expect(Number(still.getRowObjectsJson()[0].n)).toBe(before);
    reader.closeSync();
    instance.closeSync();
    expect(await rowsIn(copy)).toBe(await fixture.rows());
    expect(await rowsIn(copy)).toBeGreaterThan(before);
    expect(statSync(copy).mode & 0o777).toBe(0o644);
    expect(await fixture.verify(copy)).toEqual([]);
    expect(existsSync(`${copy}.wal`)).toBe(false);
  });

  it('does not take the place of a link whose file is not there', async () => {
    const share = join(fixture.dir, 'share', 'copy.duckdb');
    symlinkSync(share, copy);
    const done = await publish({ end_date: daysBack(4) });
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('is a link to a file that is not there')]);
    expect(readlinkSync(copy)).toBe(share);
  });

  it('is unchanged after a run that committed nothing or failed', async () => {
    expect((await publish({ lookback_days: 0 })).code).toBe(0);
    const { mtimeMs, ino } = statSync(copy);
    expect((await publish({ lookback_days: 0 })).code).toBe(0);
    expect((await publish({ export_token: 'wrong', end_date: daysBack(1) })).code).toBe(2);
    expect([statSync(copy).mtimeMs, statSync(copy).ino]).toEqual([mtimeMs, ino]);
  });

  it('is not replaced when the rows of the database differ from its receipts', async () => {
    expect((await publish({ end_date: daysBack(4) })).code).toBe(0);
    const [before, { ino }] = [await rowsIn(copy), statSync(copy)];
    // Of the first day: no later run reads it again.
    await query(fixture.file, 'DELETE FROM events WHERE _key = (SELECT min_by(_key, df_server_datetime) FROM events)');
    const again = await publish();
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('the copy was not published')]);
    expect([await rowsIn(copy), statSync(copy).ino]).toEqual([before, ino]);
  });

  it('is refused at the path of the database itself and at a file that is not its copy', async () => {
    const other = join(fixture.dir, 'notes.txt');
    writeFileSync(other, 'mine');
    expect((await fixture.sync()).code).toBe(0);
    const itself = await publish({}, fixture.file);
    expect([itself.code, itself.stderr]).toEqual([2, expect.stringContaining('is the file that is loaded')]);
    const foreign = await publish({}, other);
    expect([foreign.code, foreign.stderr]).toEqual([
      2,
      expect.stringContaining('is not a copy that this program made'),
    ]);
    expect(readFileSync(other, 'utf8')).toBe('mine');
  });
});

describe('a purge', () => {
  let server: DeletionServer;
  beforeEach(async () => {
    server = await startDeletionServer();
  });
  afterEach(() => server.close());

  async function purge(id: string) {
    const config = join(fixture.dir, 'forget.json');
    writeFileSync(
      config,
      JSON.stringify({
        base_url: server.url,
        service_id: 's',
        import_token: 't',
        ledger_dir: join(fixture.dir, 'ledger'),
      }),
    );
    const asked = [
      'forget',
      '--id',
      id,
      '--config',
      config,
      '--purge',
      'duckdb',
      fixture.file,
      '--purge-column',
      'df_unified_id',
      '--spool-dir',
      fixture.spool,
    ];
    const plan = await fixture.run([...asked, '--json']);
    const { hash } = JSON.parse(plan.stdout.trimEnd().split('\n').at(-1) ?? '{}');
    return fixture.run([...asked, '--execute', '--confirm', String(hash)]);
  }

  it('purges every copy: no byte of the person remains', async () => {
    expect((await publish()).code).toBe(0);
    const [{ person }] = await query(fixture.file, 'SELECT df_unified_id AS person FROM events LIMIT 1');
    expect(readFileSync(copy).includes(String(person))).toBe(true);
    const done = await purge(String(person));
    expect([done.code, done.stderr]).toEqual([0, expect.anything()]);
    for (const file of [fixture.file, copy]) expect(readFileSync(file).includes(String(person)), file).toBe(false);
    expect(await fixture.verify(copy)).toEqual([]);
  });

  it('replaces no file that is listed as a copy but is not one', async () => {
    expect((await publish()).code).toBe(0);
    const [{ person }] = await query(fixture.file, 'SELECT df_unified_id AS person FROM events LIMIT 1');
    const other = join(fixture.dir, 'notes.txt');
    writeFileSync(other, 'mine');
    await query(fixture.file, `INSERT INTO _dfinery_copies VALUES ('${other}', now())`);
    const done = await purge(String(person));
    expect([done.code, done.stderr]).toEqual([3, expect.stringContaining(other)]);
    expect(readFileSync(other, 'utf8')).toBe('mine');
    expect(readFileSync(copy).includes(String(person))).toBe(false);
  });

  it('fails and names a copy that it could not replace', async () => {
    expect((await publish()).code).toBe(0);
    const [{ person }] = await query(fixture.file, 'SELECT df_unified_id AS person FROM events LIMIT 1');
    rmSync(copy);
    mkdirSync(copy);
    const done = await purge(String(person));
    expect(done.code).toBe(3);
    expect(done.stderr).toContain(copy);
  });
});
