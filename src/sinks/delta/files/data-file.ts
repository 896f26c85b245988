// This folder: data files of Delta tables: names, columns, statistics.

import { randomUUID } from 'node:crypto';
import { proved } from '../../../config/validate.ts';
import type { Engine } from '../../sql/engine/engine.ts';
import { fingerprint } from '../../sql/files/fingerprint.ts';
import { readFiles } from '../../sql/files/parquet-file.ts';
import type { Action, Add } from '../log/actions.ts';
import { damaged } from '../log/parse.ts';
import { newFilePath, PARTITION } from './names.ts';
import type { Field } from './schema.ts';
import { statisticsOf } from './statistics.ts';

/** Tags of our own on the files of the log. */
const WINDOWS = 'dfinery.windows';
const SOURCE = 'dfinery.events';
const HASH = 'dfinery.sha256';
const SORTED = 'dfinery.sorted';

/** A file of a table, as its log tells it. */
export interface DataFile {
  /** From the table's folder. */
  readonly path: string;
  /** None for rows without a date. */
  readonly date: string | null;
  readonly rows: number;
  readonly bytes: number;
  /** Names of the columns that are in the file; the others are NULL in all of its rows. */
  readonly columns: ReadonlySet<string>;
  /** Rows without a value, by the name of a column that is in the file. */
  readonly nulls: ReadonlyMap<string, number>;
  /** Of `events`: rows by the number of the window that last wrote them. */
  readonly windows: ReadonlyMap<number, number>;
  /** Of the other tables: the path of the file of `events` that its rows come from. */
  readonly source: string | undefined;
  /** Of the whole file, in hex. */
  readonly sha256: string | undefined;
  /** True when `compact` wrote it, in the order that lets filters skip. */
  readonly isSorted: boolean;
  readonly add: Add;
}

/** A file that is written and not part of a table yet. */
export interface NewFile {
  /** Where it waits. */
  readonly local: string;
  /** Where it will be. */
  readonly path: string;
  readonly date: string | null;
  /** Of `events`. */
  readonly windows?: ReadonlyMap<number, number>;
  /** Of the other tables. */
  readonly source?: string;
  readonly isSorted?: boolean;
}

export function newFile(
  local: string,
  date: string | null,
  more: Pick<NewFile, 'windows' | 'source' | 'isSorted'>,
): NewFile {
  return { local, date, path: newFilePath(date, randomUUID()), ...more };
}

/**
 * A file of the log. Throws a configuration failure for one without what this program notes of each: somebody else wrote
 * it, and which windows its rows belong to is not to be guessed.
 */
export function dataFileOf(path: string, add: Add, table: string): DataFile {
  const where = `${table}/${path}`;
  const statistics = jsonOf(add.stats, where);
  const tags = add.tags ?? {};
  const date = add.partitionValues[PARTITION];
  const rows = statistics?.numRecords;
  const nulls = statistics?.nullCount;
  const isOurs =
    typeof rows === 'number' && typeof nulls === 'object' && nulls !== null && (WINDOWS in tags || SOURCE in tags);
  if (!isOurs || date === undefined) {
    throw damaged(
      where,
      'another program wrote it into the table, and this one cannot tell which windows its rows are of',
    );
  }
  const windows = jsonOf(tags[WINDOWS], where) ?? {};
  return {
    path,
    date: date === '' ? null : date,
    rows,
    bytes: add.size,
    columns: new Set(Object.keys(nulls)),
    nulls: new Map(Object.entries(nulls).map(([name, n]) => [name, Number(n)])),
    windows: new Map(Object.entries(windows).map(([window, n]) => [Number(window), Number(n)])),
    source: tags[SOURCE] ?? undefined,
    sha256: tags[HASH] ?? undefined,
    isSorted: tags[SORTED] === 'true',
    add,
  };
}

function jsonOf(text: string | null | undefined, where: string): Record<string, unknown> | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    return proved<Record<string, unknown>>(JSON.parse(text));
  } catch {
    throw damaged(where, 'what the log says of it is not JSON');
  }
}

/** The entries of a log that make these files part of a table. `isNew`: their rows were not in it before. */
export async function addsOf(
  engine: Engine,
  files: readonly NewFile[],
  fields: readonly Field[],
  now: number,
  isNew: boolean,
): Promise<Action[]> {
  const locals = files.map(({ local }) => local);
  const statistics = await statisticsOf(engine, locals, fields);
  const actions: Action[] = [];
  for (const { local, path, date, windows, source, isSorted } of files) {
    const { bytes, sha256 } = await fingerprint(local);
    const tags: Record<string, string> = { [HASH]: sha256 };
    if (isSorted === true) tags[SORTED] = 'true';
    if (source !== undefined) tags[SOURCE] = source;
    if (windows !== undefined) tags[WINDOWS] = JSON.stringify(Object.fromEntries(windows));
    actions.push({
      add: {
        path,
        partitionValues: { [PARTITION]: date },
        size: bytes,
        modificationTime: Math.floor(now),
        dataChange: isNew,
        stats: statistics.get(local) ?? null,
        tags,
      },
    });
  }
  return actions;
}

export function removeOf({ add }: DataFile, now: number, isGone: boolean): Action {
  return {
    remove: {
      path: add.path,
      deletionTimestamp: Math.floor(now),
      dataChange: isGone,
      extendedFileMetadata: true,
      partitionValues: add.partitionValues,
      size: add.size,
    },
  };
}

/** Rows by window in a local file of `events`. */
export async function windowsIn(engine: Engine, local: string): Promise<Map<number, number>> {
  const rows = await engine.rows(
    `SELECT _dfinery_window AS w, count(*) AS n FROM ${readFiles([local])} GROUP BY 1 ORDER BY 1`,
  );
  return new Map(rows.map(({ w, n }) => [Number(w), Number(n)]));
}
