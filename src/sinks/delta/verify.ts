import { plainCount } from '../../base/quantities.ts';
import { LOG_ID } from '../../schema/groups.ts';
import { TABLES, type TableName, typedColumns } from '../../table/columns.ts';
import { checkDays, checkKeys, type Difference, difference } from '../../table/differences.ts';
import { coveredDays } from '../../table/receipts.ts';
import { fingerprint } from '../sql/files/fingerprint.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { countRows, readFiles } from '../sql/files/parquet-file.ts';
import { eventItems, nameOf } from '../sql/views.ts';
import { columnsIn } from './commit/columns.ts';
import { followsEvents } from './commit/derive.ts';
import { liveRows } from './commit/receipts.ts';
import type { DataFile } from './files/data-file.ts';
import { describedType } from './files/schema.ts';
import { Lake, type LakeOptions } from './lake.ts';

/** Compares every file of the tables with the log, and all rows with the receipts. Read-only. Throws Failure. */
export async function verifyDelta(options: LakeOptions): Promise<Difference[]> {
  try {
    const lake = await Lake.open(options, 'read');
    try {
      return await differencesIn(lake.mustExist(), options.signal);
    } finally {
      await lake.close();
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.url);
  }
}

/** A table's files, and local files with their content. */
interface Files {
  readonly name: TableName;
  readonly schema: string;
  readonly files: readonly (DataFile & { readonly local: string })[];
}

async function differencesIn(lake: Lake, signal: AbortSignal | undefined): Promise<Difference[]> {
  const { domains } = lake.events;
  const names = TABLES.filter((name) => lake.table(name).exists);
  const found = [...checkReceipts(lake), ...checkDays(domains.state(), coveredDays(domains.receipts()))];
  const tables: Files[] = [];
  for (const name of names) {
    signal?.throwIfAborted();
    const missing = await checkStored(lake, name);
    found.push(...missing);
    if (missing.length > 0) continue;
    const files = await filesOf(lake, name);
    tables.push(files);
    found.push(...(await checkContent(lake, files)));
  }
  if (found.some(({ check }) => check === 'files')) return found;
  for (const table of tables) found.push(...(await checkColumns(lake, table)));
  const events = tables.find(({ name }) => name === 'events')?.files ?? [];
  if (events.length > 0) found.push(...(await checkRows(lake, events)), ...(await checkRowKeys(lake, events)));
  for (const table of tables) if (table.name !== 'events') found.push(...(await checkDerived(lake, table, events)));
  return found;
}

/** The log agrees with itself. */
function checkReceipts(lake: Lake): Difference[] {
  const live = liveRows(lake.events.files());
  const receipts = new Map(lake.events.domains.receipts().map((receipt) => [receipt.window, receipt]));
  return [...live].flatMap(([window, rows]) => {
    const receipt = receipts.get(window);
    if (receipt === undefined)
      return [
        difference(
          'rows',
          `${plainCount(rows, 'row belongs', 'rows belong')} to window ${window}, which has no receipt`,
        ),
      ];
    if (rows <= receipt.rows) return [];
    const of = `window ${window} (${receipt.from} to ${receipt.to})`;
    return [difference('rows', `${of} has ${plainCount(rows, 'row')}, and its receipt only ${receipt.rows}`)];
  });
}

async function checkStored(lake: Lake, name: TableName): Promise<Difference[]> {
  const stored = new Map<string, number>();
  for await (const { path, bytes } of lake.storage.list(name)) stored.set(path, bytes);
  return lake
    .table(name)
    .files()
    .flatMap(({ path, bytes }) => {
      const is = stored.get(`${name}/${path}`);
      if (is === bytes) return [];
      const how = is === undefined ? 'is missing' : `has ${is} bytes, the log says ${bytes}`;
      return [difference('files', `${name}/${path} ${how}`)];
    });
}

async function filesOf(lake: Lake, name: TableName): Promise<Files> {
  const files = lake.table(name).files();
  const locals = await lake.fetch(name, files);
  return {
    name,
    schema: lake.table(name).schema ?? '{}',
    files: files.map((file) => ({ ...file, local: locals.get(file.path) ?? '' })),
  };
}

async function checkContent(lake: Lake, { name, files }: Files): Promise<Difference[]> {
  const found: Difference[] = [];
  for (const { path, local, sha256 } of files) {
    if (sha256 === undefined || (await fingerprint(local)).sha256 === sha256) continue;
    found.push(difference('files', `${name}/${path} is not the file that was written`));
  }
  if (found.length > 0) return found;
  const counts = await countRows(
    lake.engine,
    files.map(({ local }) => local),
  );
  return files.flatMap(({ path, local, rows }) => {
    const is = counts.get(local);
    return is === rows
      ? []
      : [difference('files', `${name}/${path} has ${plainCount(is, 'row')}, the log says ${rows}`)];
  });
}

/** Every column of a file is in the table's schema, of the same type. */
async function checkColumns(lake: Lake, { name, schema, files }: Files): Promise<Difference[]> {
  const fields: { name: string; type: unknown }[] = JSON.parse(schema).fields ?? [];
  const types = new Map(fields.map((field) => [field.name, JSON.stringify(field.type)]));
  const found: Difference[] = [];
  for (const { path, local } of files) {
    const rows = await lake.engine.rows(
      `SELECT CAST(to_json([column_name, column_type]) AS VARCHAR) AS c FROM (DESCRIBE SELECT * FROM ${readFiles([local])})`,
    );
    for (const { c } of rows) {
      const [column, type]: [string, string] = JSON.parse(String(c));
      const [is, should] = [JSON.stringify(describedType(type)), types.get(column)];
      if (is === should) continue;
      found.push(
        difference('columns', `${name}/${path}: column ${column} should be ${should ?? 'absent'} and is ${is}`),
      );
    }
  }
  return found;
}

/** The rows of each window, in the files, are what the log says. */
async function checkRows(lake: Lake, events: Files['files']): Promise<Difference[]> {
  const from = readFiles(events.map(({ local }) => local));
  const rows = await lake.engine.rows(`SELECT _dfinery_window AS w, count(*) AS n FROM ${from} GROUP BY 1`);
  const there = new Map(rows.map(({ w, n }) => [Number(w), Number(n)]));
  const said = liveRows(events);
  return [...new Set([...there.keys(), ...said.keys()])]
    .sort((a, b) => a - b)
    .flatMap((window) => {
      const [is, should] = [there.get(window) ?? 0, said.get(window) ?? 0];
      return is === should
        ? []
        : [difference('rows', `window ${window} should have ${plainCount(should, 'row')}, and has ${is}`)];
    });
}

async function checkRowKeys(lake: Lake, events: Files['files']): Promise<Difference[]> {
  const from = readFiles(events.map(({ local }) => local));
  return checkKeys(
    await lake.engine.row(
      `SELECT count(*) FILTER (_key IS NULL) AS absent, (SELECT count(*) FROM (SELECT _key FROM ${from}
      WHERE _key IS NOT NULL GROUP BY _key HAVING count(*) > 1)) AS repeated FROM ${from}`,
    ),
  );
}

/** The other tables have a row for each item and for each event, and follow from the events that are there. */
async function checkDerived(lake: Lake, { name, files }: Files, events: Files['files']): Promise<Difference[]> {
  const { domains, version } = lake.events;
  const source = lake.table(name).domains.table()?.source;
  if (name !== 'events' && !followsEvents(lake, name)) {
    const lost = `${name} follows from a version ${version} of events that another writer was quicker to make: sync again`;
    const behind = `${name} follows from version ${source} of events, which has version ${version}: sync again`;
    return [difference('rows', source === version ? lost : behind)];
  }
  const columns = domains.columns() ?? [];
  let should = 0;
  if (name === 'event_logs' && events.length > 0) {
    const log = nameOf(columns, LOG_ID);
    const from = readFiles(events.map(({ local }) => local));
    const rows = `SELECT 1 FROM ${from} GROUP BY ${log}, CASE WHEN ${log} IS NULL THEN _key END`;
    should = Number((await lake.engine.row(`SELECT count(*) AS n FROM (${rows})`)).n);
  } else {
    for (const event of name === 'event_items' ? events : []) {
      const items = eventItems(typedColumns(columnsIn(columns, event.columns)), readFiles([event.local]));
      should += Number((await lake.engine.row(`SELECT count(*) AS n FROM (${items})`)).n);
    }
  }
  const is = files.reduce((sum, { rows }) => sum + rows, 0);
  return is === should ? [] : [difference('rows', `${name} should have ${plainCount(should, 'row')}, and has ${is}`)];
}
