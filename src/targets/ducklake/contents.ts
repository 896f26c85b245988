import { configError } from '../../base/errors.ts';
import type { NamedTexts } from '../../engine/naming-objects.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { isTableName } from '../../table/columns.ts';
import { identityOf } from '../copies/mark.ts';
import { COPIES_TABLE, CREATE_COPIES } from '../copies/publish.ts';
import { expireSnapshots } from './format/expire.ts';
import { CATALOG_TABLE_NAMES } from './format/rows.ts';
import { type CatalogSnapshot, isLiveAt, readSnapshot } from './format/snapshot.ts';

// What this program keeps in a catalog beside the tables of the format, and what it reads of both.

/** The table with the mark: which file this catalog is, or of which catalog it is a copy. */
export const MARKS = '_dfinery_mark';
/** This program's tables in a catalog: the state, and facts about files for which the format has no column. */
const OWN_TABLES = [
  '_dfinery_state(v INTEGER, "name" VARCHAR, "value" VARCHAR)',
  '_dfinery_files(v INTEGER, data_file_id BIGINT, "value" VARCHAR)',
  `${MARKS}(database VARCHAR, file VARCHAR, copy_of VARCHAR)`,
];

/** What an open catalog holds: the format's latest snapshot, and this program's own tables. */
export interface CatalogContents extends CatalogSnapshot {
  readonly state: ReadonlyMap<string, string>;
  /** This program's notes of `files`, by id; a file that another program wrote has none. */
  readonly notes: ReadonlyMap<number, string>;
  /** Id of the catalog of which this is a copy; null for a catalog itself; undefined if it was never loaded. */
  readonly copyOf: string | null | undefined;
  readonly hasCopies: boolean;
}

export async function createOwnTables(engine: Engine): Promise<void> {
  for (const table of OWN_TABLES) await engine.run(`CREATE TABLE IF NOT EXISTS ${table}`);
  await engine.run(CREATE_COPIES);
  await engine.run(`INSERT INTO ${MARKS} SELECT CAST(uuid() AS VARCHAR), $1, NULL WHERE NOT EXISTS (FROM ${MARKS})`, [
    identityOf(engine.file),
  ]);
}

/** The failure for a catalog in which another program changed what this one stored. */
export const unusableError = (file: string, why: string) =>
  configError(`${file} cannot be used: ${why}. Restore it, or load the days again into another catalog.`, {
    where: { file },
  });

/** Reads the open catalog; undefined if the file has no table. Throws UserError. */
export async function readContents(engine: Engine): Promise<CatalogContents | undefined> {
  const { file } = engine;
  const names = await tableNames(engine);
  if (names.size === 0) return undefined;
  if (!names.has('ducklake_metadata') || !names.has('ducklake_snapshot')) {
    if (names.has('_dfinery_windows')) {
      throw configError(`${file} was loaded by sync duckdb: say duckdb in place of ducklake, or give another file.`);
    }
    throw configError(`${file} is a DuckDB file without a catalog of DuckLake: give another file.`);
  }
  return {
    ...(await readSnapshot(engine, names)),
    state: names.has('_dfinery_state') ? await readStateEntries(engine) : new Map(),
    notes: names.has('_dfinery_files') ? await readNotes(engine) : new Map(),
    copyOf: names.has(MARKS)
      ? (((await engine.row(`SELECT copy_of FROM ${MARKS}`)).copy_of ?? null) as string | null)
      : undefined,
    hasCopies: names.has(COPIES_TABLE) && (await engine.count(COPIES_TABLE)) > 0,
  };
}

async function tableNames(engine: Engine): Promise<Set<string>> {
  const tables = await engine.rows(
    'SELECT table_name AS name FROM duckdb_tables() WHERE database_name = current_database()',
  );
  return new Set(tables.map(({ name }) => String(name)));
}

/** True if nobody has committed anything since a read. */
export async function isLatest(engine: Engine, { snapshotId, state }: CatalogContents): Promise<boolean> {
  const names = await tableNames(engine);
  if (!names.has('ducklake_snapshot') || !names.has('_dfinery_state')) return false;
  const { id, change } = await engine.row(
    `SELECT max(snapshot_id) AS id, (SELECT value FROM _dfinery_state WHERE name = 'change') AS change
    FROM ducklake_snapshot`,
  );
  return Number(id) === snapshotId && change === state.get('change');
}

async function readStateEntries(engine: Engine): Promise<ReadonlyMap<string, string>> {
  const rows = await engine.rows('SELECT v, name, value FROM _dfinery_state ORDER BY name');
  if (rows.some(({ v }) => Number(v) !== 1)) {
    throw configError(`${engine.file} was written by a later version of this program: update it.`);
  }
  return new Map(rows.map(({ name, value }) => [String(name), String(value)]));
}

async function readNotes(engine: Engine): Promise<ReadonlyMap<number, string>> {
  const rows = await engine.rows(
    `SELECT data_file_id AS id, n.value FROM _dfinery_files n JOIN ducklake_data_file f USING (data_file_id)
    WHERE end_snapshot IS NULL AND n.value IS NOT NULL`,
  );
  const notes = new Map(rows.map(({ id, value }) => [Number(id), String(value)]));
  if (notes.size !== rows.length) throw unusableError(engine.file, '_dfinery_files has two notes of one file');
  return notes;
}

const KNOWN_TABLES: ReadonlySet<string> = new Set([
  ...CATALOG_TABLE_NAMES,
  ...[...OWN_TABLES, COPIES_TABLE].map((table) => table.split('(')[0]),
]);

/** Names of tables, in the file or in the catalog, that are not this program's. */
export async function foreignTables(engine: Engine, { snapshotId }: CatalogContents): Promise<string[]> {
  const rows = await engine.rows(
    `SELECT schema_name AS schema, table_name AS name FROM ducklake_table t JOIN ducklake_schema s USING (schema_id)
    WHERE ${isLiveAt('t', snapshotId)} AND ${isLiveAt('s', snapshotId)}`,
  );
  const others = rows.filter(({ schema, name }) => schema !== 'main' || !isTableName(name));
  // Tables of the format include the inlined data of any table.
  const isKnown = (name: string) => KNOWN_TABLES.has(name) || /^ducklake_(inlined|temp)_/.test(name);
  const inFile = [...(await tableNames(engine))].filter((name) => !isKnown(name));
  return [...inFile, ...others.map(({ schema, name }) => `${schema}.${name}`)].sort();
}

/** Where a catalog keeps texts, also of older snapshots, as rows. */
export const CATALOG_TEXTS: readonly NamedTexts[] = [
  ['view', 'ducklake_view', 'view_name', 'sql', 'sql'],
  ['macro', 'ducklake_macro_impl JOIN ducklake_macro USING (macro_id)', 'macro_name', 'sql', 'sql'],
  ['tag', 'ducklake_tag', 'key', 'NULL', 'value'],
  ['tag', 'ducklake_column_tag', "key || ' of a column'", 'NULL', 'value'],
];

/** Names of files that this program noted and that nothing else lists: no program removes files in that way. */
export async function lostNames(engine: Engine): Promise<Set<string>> {
  const listed = ['ducklake_data_file', 'ducklake_files_scheduled_for_deletion']
    .map((table) => `data_file_id NOT IN (SELECT data_file_id FROM ${table} WHERE data_file_id IS NOT NULL)`)
    .join(' AND ');
  const rows = await engine.rows(
    `SELECT 'part-' || json_extract_string(TRY_CAST(value AS JSON), '$.id') || '.parquet' AS name
    FROM _dfinery_files WHERE ${listed}`,
  );
  if (rows.some(({ name }) => name === null))
    throw unusableError(engine.file, 'a row of _dfinery_files is not what this program stored');
  return new Set(rows.map(({ name }) => String(name)));
}

/** Removes all snapshots before one, as `expireSnapshots` does, and the notes of the files that only they had. */
export async function expireContents(engine: Engine, contents: CatalogContents, before: number, at: string) {
  const paths = await expireSnapshots(engine, contents, await tableNames(engine), { before, at });
  await engine.run(
    'DELETE FROM _dfinery_files WHERE data_file_id NOT IN (SELECT data_file_id FROM ducklake_data_file)',
  );
  return paths;
}
