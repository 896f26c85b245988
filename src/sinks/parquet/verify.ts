import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { LOG_ID } from '../../schema/groups.ts';
import { TABLES, type TableName, typedColumns } from '../../table/columns.ts';
import { checkDays, checkKeys, type Difference, difference } from '../../table/differences.ts';
import { coveredDays } from '../../table/receipts.ts';
import { TYPES } from '../../types/index.ts';
import { identifier } from '../sql/engine/quote.ts';
import { fingerprint } from '../sql/files/fingerprint.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { countRows, readFiles } from '../sql/files/parquet-file.ts';
import { eventItems, nameOf } from '../sql/views.ts';
import { LIVE_ENDING } from './dataset/layout.ts';
import type { LiveFile, Manifest } from './dataset/manifest.ts';
import { receiptsAfter } from './dataset/receipts.ts';
import { type ReadOptions, readDataset, type Snapshot } from './dataset/snapshot.ts';

/**
 * Compares every file of a folder with its manifest, and the rows of all of them with the receipts. Writes nothing
 * there. Throws Failure when it cannot be read, or while a change of it is not finished.
 */
export async function verifyParquet(options: ReadOptions): Promise<Difference[]> {
  try {
    return await readDataset(
      options,
      (snapshot) => differencesIn(snapshot, options.signal),
      (found) => found.length > 0,
    );
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.dir);
  }
}

async function differencesIn(snapshot: Snapshot, signal: AbortSignal | undefined): Promise<Difference[]> {
  const { manifest } = snapshot;
  const found = [
    ...(await checkFiles(snapshot, signal)),
    ...checkReceipts(manifest),
    ...checkDays(manifest.state, coveredDays(manifest.receipts)),
  ];
  if (found.some(({ check }) => check === 'files')) return found;
  for (const check of [checkColumns, checkRows, checkRowKeys, checkDerived]) {
    signal?.throwIfAborted();
    found.push(...(await check(snapshot)));
  }
  return found;
}

async function checkFiles(dataset: Snapshot, signal: AbortSignal | undefined): Promise<Difference[]> {
  const { files } = dataset.manifest;
  const found: Difference[] = [];
  const whole: LiveFile[] = [];
  for (const file of files) {
    signal?.throwIfAborted();
    const is = await fingerprintIfThere(dataset.pathOf(file.path));
    if (is === undefined) found.push(difference('files', `${file.path} is missing`));
    else if (is.bytes !== file.bytes || is.sha256 !== file.sha256) {
      found.push(
        difference('files', `${file.path} is not the file that was written (${is.bytes} bytes, was ${file.bytes})`),
      );
    } else whole.push(file);
  }
  const counts = await countRows(
    dataset.engine,
    whole.map((file) => dataset.pathOf(file.path)),
  );
  for (const file of whole) {
    const rows = counts.get(dataset.pathOf(file.path));
    if (rows !== file.rows)
      found.push(difference('files', `${file.path} has ${plainCount(rows, 'row')}, the manifest says ${file.rows}`));
  }
  const known = new Set(files.map(({ path }) => path));
  for (const path of await liveFiles(dataset)) {
    if (!known.has(path)) found.push(difference('files', `${path} is not in the manifest, and readers see it`));
  }
  return found;
}

async function fingerprintIfThere(path: string) {
  try {
    return await fingerprint(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The files that a reader with a glob pattern finds. */
async function liveFiles({ places }: Snapshot): Promise<string[]> {
  const found: string[] = [];
  for (const name of TABLES) {
    const folder = join(places.root, name);
    const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error) => {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    });
    for (const entry of entries) {
      if (!entry.isDirectory() && entry.name.endsWith(LIVE_ENDING)) {
        found.push(join(entry.parentPath, entry.name).slice(places.root.length + 1));
      }
    }
  }
  return found.map((path) => path.replaceAll('\\', '/')).sort();
}

/** Checks that the manifest is consistent. */
function checkReceipts({ receipts, files }: Manifest): Difference[] {
  const counted = new Map(receiptsAfter(receipts, files).map((receipt) => [receipt.window, receipt.rows_live]));
  return receipts.flatMap(({ window, from, to, rows, rows_live: said }) => {
    const there = counted.get(window) ?? 0;
    if (there === said && said <= rows) return [];
    return [
      difference(
        'rows',
        `window ${window} (${from} to ${to}) should have ${plainCount(said, 'row')} of its ${rows}, and has ${there}`,
      ),
    ];
  });
}

function pathsOf({ manifest, pathOf }: { readonly manifest: Manifest; pathOf(path: string): string }, name: TableName) {
  return manifest.files.filter(({ path }) => path.startsWith(`${name}/`)).map(({ path }) => pathOf(path));
}

const datasetPaths = (dataset: Snapshot, name: TableName) =>
  pathsOf({ manifest: dataset.manifest, pathOf: (path) => dataset.pathOf(path) }, name);

/** Every file has the columns of the manifest, in its order, of its types. */
async function checkColumns(dataset: Snapshot): Promise<Difference[]> {
  const { manifest } = dataset;
  const zoned = manifest.timezone !== null;
  const own = ['_key VARCHAR', '_dfinery_window BIGINT', '_rescued VARCHAR'];
  const typed = typedColumns(manifest.columns).map(
    ({ name, type }) => `${identifier(name)} ${TYPES[type].duckdb(zoned)}`,
  );
  const wanted = new Map<TableName, string>([['events', [...own, ...typed].join(', ')]]);
  const found: Difference[] = [];
  for (const name of TABLES) {
    for (const path of datasetPaths(dataset, name)) {
      const is = await columnsOf(dataset, path);
      if (!wanted.has(name)) wanted.set(name, is);
      if (is === wanted.get(name)) continue;
      found.push(
        difference(
          'columns',
          `${path.slice(dataset.places.root.length + 1)} has other columns than the rest of ${name}`,
        ),
      );
    }
  }
  return found;
}

async function columnsOf(dataset: Snapshot, path: string): Promise<string> {
  const rows = await dataset.engine.rows(`DESCRIBE SELECT * FROM ${readFiles([path])}`);
  const own = new Set(['_key', '_dfinery_window', '_rescued']);
  return rows
    .map(({ column_name: name, column_type: type }) => {
      const text = String(type) === 'TIMESTAMP WITH TIME ZONE' ? 'TIMESTAMPTZ' : String(type);
      return own.has(String(name)) ? `${name} ${text}` : `${identifier(String(name))} ${text}`;
    })
    .join(', ');
}

/** The rows of each window, in the files, are what the manifest says. */
async function checkRows(dataset: Snapshot): Promise<Difference[]> {
  const paths = datasetPaths(dataset, 'events');
  if (paths.length === 0) return [];
  const rows = await dataset.engine.rows(
    `SELECT _dfinery_window AS w, count(*) AS n FROM ${readFiles(paths)} GROUP BY 1`,
  );
  const there = new Map(rows.map(({ w, n }) => [Number(w), Number(n)]));
  const said = new Map(dataset.manifest.receipts.map(({ window, rows_live }) => [window, rows_live]));
  return [...new Set([...there.keys(), ...said.keys()])]
    .sort((a, b) => a - b)
    .flatMap((window) => {
      const [is, should] = [there.get(window) ?? 0, said.get(window)];
      if (should === undefined)
        return [
          difference(
            'rows',
            `${plainCount(is, 'row belongs', 'rows belong')} to window ${window}, which has no receipt`,
          ),
        ];
      return is === should
        ? []
        : [difference('rows', `window ${window} should have ${plainCount(should, 'row')}, and has ${is}`)];
    });
}

async function checkRowKeys(dataset: Snapshot): Promise<Difference[]> {
  const paths = datasetPaths(dataset, 'events');
  if (paths.length === 0) return [];
  const files = readFiles(paths);
  const absent = await dataset.engine.row(`SELECT count(*) FILTER (_key IS NULL) AS absent FROM ${files}`);
  const repeated = await dataset.engine.row(
    `SELECT count(*) AS repeated FROM (SELECT _key FROM ${files} WHERE _key IS NOT NULL GROUP BY _key HAVING count(*) > 1)`,
  );
  return checkKeys({ ...absent, ...repeated });
}

/** The other datasets have a row for each item and for each event. */
async function checkDerived(dataset: Snapshot): Promise<Difference[]> {
  const { manifest, engine } = dataset;
  const events = datasetPaths(dataset, 'events');
  if (events.length === 0) return [];
  const log = nameOf(manifest.columns, LOG_ID);
  const files = readFiles(events);
  const wanted = {
    event_items: `(${eventItems(typedColumns(manifest.columns), files)})`,
    event_logs: `(SELECT 1 FROM ${files} GROUP BY ${log}, CASE WHEN ${log} IS NULL THEN _key END)`,
  };
  const found: Difference[] = [];
  for (const name of ['event_items', 'event_logs'] as const) {
    if (!manifest.tables.includes(name)) continue;
    const should = Number((await engine.row(`SELECT count(*) AS n FROM ${wanted[name]}`)).n);
    const is = manifest.files
      .filter(({ path }) => path.startsWith(`${name}/`))
      .reduce((sum, { rows }) => sum + rows, 0);
    if (is !== should)
      found.push(difference('rows', `${name} should have ${plainCount(should, 'row')}, and has ${is}`));
  }
  return found;
}
