import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeModels } from '../../../src/targets/duckdb/models/write.ts';
import {
  peopleInDuckDb,
  readDuckDbState,
  reportDuckDb,
  rowsInDuckDb,
  verifyDuckDb,
} from '../../../src/targets/duckdb/read.ts';
import { purgeDuckDb, rewriteDuckDb, tryPurgeDuckDb } from '../../../src/targets/duckdb/rewrite.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(async () => {
  fixture = new DuckDbFixture();
  await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', df_unified_id: 'erna', c0: '1' }]))]);
});
afterEach(() => fixture.close());

const options = () => ({ ...fixture.targetOptions, file: fixture.file });
const erna = { column: 'df_unified_id', ids: ['erna'] };

/** What the commands do with a file, by their names. */
const COMMANDS: Readonly<Record<string, () => Promise<unknown>>> = {
  sync: () => fixture.open(),
  plan: () => readDuckDbState(options()),
  verify: () => verifyDuckDb(options()),
  report: () => reportDuckDb(options()),
  models: () => writeModels(options()),
  person: () => rowsInDuckDb(options(), erna).next(),
  'forget, its plan': () => peopleInDuckDb(options(), erna),
  'forget, its trial': () => tryPurgeDuckDb(options(), erna),
  'forget --purge': () => purgeDuckDb(options(), erna),
  compact: () => rewriteDuckDb(options()),
};

/** The commands that end otherwise than with exit 2 and this message, each with its end. */
async function othersThan(message: RegExp, commands = Object.entries(COMMANDS)): Promise<string[]> {
  const others = [];
  for (const [name, run] of commands) {
    const end = await run().catch((error: unknown) => error);
    const isRefusal = end instanceof Error && 'exitCode' in end && end.exitCode === 2 && message.test(end.message);
    if (!isRefusal) others.push(`${name}: ${end}`);
  }
  return others;
}

describe("a DuckDB file whose own tables are not this program's any more", () => {
  it.each([
    [`UPDATE _dfinery_state SET state = '[1]'`, /state cannot be used \(it is not a JSON object\)/],
    [`UPDATE _dfinery_state SET state = '{"version":1,"from_date":7}'`, /state cannot be used \(from_date must be /],
    [
      `ALTER TABLE _dfinery_state ALTER state TYPE VARCHAR; UPDATE _dfinery_state SET state = '{oops'`,
      /state cannot be used \(it is not a JSON object\)/,
    ],
    [`UPDATE _dfinery_state SET timezone = 'Mars/Nowhere'`, /_dfinery_state .*\("Mars\/Nowhere" is no time zone\)/],
    [`UPDATE _dfinery_columns SET type = 'blob' WHERE position = 0`, /_dfinery_columns .*\(0\/type must be /],
    [
      `UPDATE _dfinery_columns SET source_name = NULL WHERE position = 0`,
      /_dfinery_columns .*\(0\/source must be string/,
    ],
    [`UPDATE _dfinery_windows SET from_date = NULL`, /_dfinery_windows .*\(from must be string\)/],
    [`INSERT INTO _dfinery_event_names VALUES (NULL)`, /_dfinery_event_names .*\(name must be string\)/],
    [`UPDATE _dfinery_windows SET id = NULL`, /_dfinery_windows .*\(id must be string\)/],
    [
      `INSERT INTO _dfinery_changes (changed_at, change) VALUES (now(), 'gone')`,
      /_dfinery_changes .*\(changes\/8\/sourceName must be string\)/,
    ],
    ['ALTER TABLE _dfinery_windows DROP COLUMN sha256', /lacks the column _dfinery_windows\.sha256 of ours/],
    ['ALTER TABLE _dfinery_state DROP COLUMN v', /lacks the column _dfinery_state\.v of ours/],
    [
      'ALTER TABLE _dfinery_windows RENAME TO mine; CREATE VIEW _dfinery_windows AS FROM mine',
      /lacks the table _dfinery_windows of ours/,
    ],
  ])('is refused by every command after %s', async (damage, message) => {
    for (const statement of damage.split('; ')) await fixture.query(statement);
    expect(await othersThan(message)).toEqual([]);
  });

  it('is refused by a report where a run has no beginning', async () => {
    await fixture.query(`INSERT INTO _dfinery_runs (number, version) VALUES (1, '0.1.0')`);
    expect(await othersThan(/_dfinery_runs .*\(run\/began must be string\)/, [['report', COMMANDS.report]])).toEqual(
      [],
    );
  });
});

describe('a DuckDB file whose table events was changed', () => {
  it.each([
    ['DROP COLUMN _key', '_key', 'column _key should be VARCHAR and is absent'],
    ['DROP COLUMN _dfinery_window', '_dfinery_window', 'column _dfinery_window should be BIGINT and is absent'],
    ['DROP COLUMN _rescued', '_rescued', 'column _rescued should be JSON and is absent'],
    ['ALTER _rescued TYPE VARCHAR', '_rescued JSON', 'column _rescued should be JSON and is VARCHAR'],
  ])('has the own column named after %s, by verify as a difference', async (change, lacking, message) => {
    await fixture.query(`ALTER TABLE events ${change}`);
    expect(await verifyDuckDb(options())).toEqual([{ check: 'columns', message }]);
    const others = Object.entries(COMMANDS).filter(([name]) => !['plan', 'verify', 'compact'].includes(name));
    expect(await othersThan(new RegExp(`lacks columns that were loaded \\(${lacking}\\)`), others)).toEqual([]);
  });
});

describe('a DuckDB file without one of its views', () => {
  const views = () => fixture.query('SELECT view_name AS v FROM duckdb_views() WHERE NOT internal ORDER BY 1');

  it.each(['event_logs', 'event_items'])('gets %s again from models', async (view) => {
    const before = await views();
    await fixture.query(`DROP VIEW ${view}`);
    expect(await writeModels(options())).toContain('analytics.sessions');
    expect(await views()).toEqual(expect.arrayContaining(before));
    expect(await fixture.query('SELECT events FROM analytics.users')).toEqual([{ events: '1' }]);
  });

  it('has a table in its place named, by models and by a load of a new column', async () => {
    await fixture.query('DROP VIEW event_logs');
    await fixture.query('CREATE TABLE event_logs AS SELECT 42 AS x');
    const refusal = { exitCode: 2, message: expect.stringMatching(/has a table event_logs, made by somebody else/) };
    await expect(writeModels(options())).rejects.toMatchObject(refusal);
    const more = fixture.window('2026-01-02', csvOf([{ id: 'b', c1: '1' }]));
    await expect(fixture.load([more])).rejects.toMatchObject(refusal);
    expect(await fixture.query('SELECT x FROM event_logs')).toEqual([{ x: 42 }]);
    expect(await fixture.query('SELECT _key FROM events')).toEqual([{ _key: 'a' }]);
  });
});
