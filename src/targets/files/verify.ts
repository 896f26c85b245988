import { stat } from 'node:fs/promises';
import { plainCount } from '../../base/quantities.ts';
import { describe } from '../../engine/conversions.ts';
import { countKeyFaults, rowsByWindow } from '../../engine/rows/counts.ts';
import { eventIdentity, eventItems } from '../../engine/views.ts';
import { TABLES, type TableName, typedColumns } from '../../table/columns.ts';
import { checkDays, checkKeys, checkLiveRows, type Difference, difference } from '../../table/differences.ts';
import { coveredDays } from '../../table/receipts.ts';
import { type DataFile, liveRows, type ReadableFile } from './data-file.ts';
import { columnsIn, eventColumns, withUnloggedColumns } from './file-columns.ts';
import { copiesOf, type FileTable, readingTable } from './file-table.ts';
import type { FilesFormat, OpenFilesOptions } from './files-format.ts';
import { countRows, DATE_COLUMN, fingerprint, readFiles } from './parquet-file.ts';

/** Compares every file with the log, and all rows with the receipts. Read-only. Throws UserError. */
export function verifyFiles(format: FilesFormat, options: OpenFilesOptions): Promise<Difference[]> {
  const isCertain = (differences: readonly Difference[]) => differences.length === 0;
  return readingTable(format, options, (table) => differencesIn(table, options.signal), isCertain);
}

async function differencesIn(table: FileTable, signal: AbortSignal | undefined): Promise<Difference[]> {
  const { state, outdated } = table.snapshot;
  const differences = [
    ...checkLiveRows(state.receipts, liveRows(table.filesOf('events'))),
    ...checkDays(state.exportState, coveredDays(state.receipts)),
    ...((await table.log.check?.()) ?? []),
    ...(await checkFiles(table, signal)),
  ];
  if (differences.some(({ check }) => check === 'files')) return differences;
  const files = await table.fetch(table.snapshot.files);
  const events = files.filter((file) => file.table === 'events');
  const isCounted = !differences.some(({ check }) => check === 'rows');
  if (events.length > 0) {
    const { engine } = table;
    const from = readFiles(copiesOf(events));
    differences.push(...(await checkFileColumns(table, files)));
    signal?.throwIfAborted();
    if (isCounted) differences.push(...checkLiveRows(state.receipts, await rowsByWindow(engine, from)));
    signal?.throwIfAborted();
    differences.push(...checkKeys(await countKeyFaults(engine, from)));
  }
  for (const name of TABLES) {
    if (name === 'events' || !state.tables.includes(name)) continue;
    signal?.throwIfAborted();
    if (outdated.has(name)) {
      // Not every run that comes next wants a table whose first commit a dead run left alone.
      const message = `${name} does not follow from the events that are there: sync again, with --tables ${name}`;
      differences.push(difference('rows', message));
    } else differences.push(...(await checkDerived(table, events, name)));
  }
  return differences;
}

/** Checks that every file is there and is the one that was written. */
async function checkFiles(table: FileTable, signal: AbortSignal | undefined): Promise<Difference[]> {
  const stored = new Map<string, number>();
  for (const name of TABLES) {
    for await (const { path, bytes } of table.storage.list(name)) stored.set(path, bytes);
  }
  const differences: Difference[] = [];
  const whole: DataFile[] = [];
  for (const file of table.snapshot.files) {
    signal?.throwIfAborted();
    if (file.local !== undefined) continue;
    const bytes = stored.get(file.path) ?? (await bytesBehindLink(table, file));
    if (bytes === file.bytes) whole.push(file);
    else {
      const how =
        bytes === undefined ? 'is missing' : `is not the file that was written (${bytes} bytes, was ${file.bytes})`;
      differences.push(difference('files', `${file.path} ${how}`));
    }
  }
  const fetched = await table.fetch(whole);
  for (const file of fetched) {
    signal?.throwIfAborted();
    if (file.sha256 === undefined || (await fingerprint(file.copy)) === file.sha256) continue;
    differences.push(difference('files', `${file.path} is not the file that was written`));
  }
  if (differences.length === 0) {
    const counts = await countRows(table.engine, copiesOf(fetched));
    for (const file of fetched) {
      const rows = counts.get(file.copy) ?? 0;
      if (rows === file.rows) continue;
      differences.push(difference('files', `${file.path} has ${plainCount(rows, 'row')} instead of ${file.rows}`));
    }
  }
  return differences;
}

/** Size of the file to which links lead: readers see it, but a listing does not. */
async function bytesBehindLink({ storage }: FileTable, { path }: DataFile): Promise<number | undefined> {
  if (storage.workFolder === undefined) return undefined;
  return (await stat(await storage.localFile(path, '')).catch(() => undefined))?.size;
}

/** Checks that every file has the columns of the state with their types; derived tables, those of their first file. */
async function checkFileColumns(table: FileTable, files: readonly ReadableFile[]): Promise<Difference[]> {
  const { columns } = table.snapshot.state;
  const { hasOneFilePerDate, hasDateColumn } = table.log.layout;
  const wanted = (names: ReadonlySet<string>) =>
    [...eventColumns(columnsIn(columns, names), table.zone), ...(hasDateColumn === true ? [DATE_COLUMN] : [])].map(
      ({ name, type }) => `${name} ${type}`,
    );
  const first = new Map<TableName, readonly string[]>();
  const differences: Difference[] = [];
  for (const file of files) {
    if (hasOneFilePerDate !== true && file.table !== 'events') continue;
    const described = await describe(table.engine, `SELECT * FROM ${readFiles([file.copy])}`);
    const actual = described.map(({ name, type }) => `${name} ${type}`);
    const expected = file.table === 'events' ? wanted(file.columns) : (first.get(file.table) ?? actual);
    first.set(file.table, expected);
    const textOf = (list: readonly string[]) => JSON.stringify(hasOneFilePerDate === true ? list : [...list].sort());
    if (textOf(actual) === textOf(expected)) continue;
    const message = `${file.path} has other columns than ${file.table} should have: it ${columnDifference(actual, expected)}`;
    differences.push(difference('columns', message));
  }
  return differences;
}

/** The difference between two lists of columns, as a clause that follows "it". */
function columnDifference(actual: readonly string[], expected: readonly string[]): string {
  const odd = actual.find((column) => !expected.includes(column));
  if (odd !== undefined) return `has ${odd}`;
  const missing = expected.find((column) => !actual.includes(column));
  if (missing !== undefined) return `lacks ${missing}`;
  return `has ${actual.find((column, i) => expected[i] !== column)} in another place`;
}

/** Checks that a derived table has a row for each item, or for each event. */
async function checkDerived(table: FileTable, events: readonly ReadableFile[], name: TableName): Promise<Difference[]> {
  const { columns } = table.snapshot.state;
  let expected = 0;
  if (name === 'event_items') {
    for (const event of await withUnloggedColumns(table.engine, events, columns)) {
      const own = typedColumns(columnsIn(columns, event.columns));
      expected += await table.engine.count(`(${eventItems(own, readFiles([event.copy]))})`);
    }
  } else if (events.length > 0) {
    expected = await table.engine.count(
      `(SELECT 1 FROM ${readFiles(copiesOf(events))} GROUP BY ${eventIdentity(columns)})`,
    );
  }
  const actual = table.filesOf(name).reduce((sum, { rows }) => sum + rows, 0);
  if (actual === expected) return [];
  return [difference('rows', `${name} should have ${plainCount(expected, 'row')}, and has ${actual}`)];
}
