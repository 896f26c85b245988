import { readFile } from 'node:fs/promises';
import schema from '../../../../schemas/manifest.json' with { type: 'json' };
import { codeOf, configFailure } from '../../../base/errors.ts';
import { compileSchema, proved } from '../../../config/validate.ts';
import type { Receipt, State } from '../../../extract/window.ts';
import { replaceFile } from '../../../fs/atomic-file.ts';
import type { StoredColumn, TableName } from '../../../table/columns.ts';
import { partitionOf } from './layout.ts';

/** A file that belongs to the dataset. */
export interface LiveFile {
  /** From the folder, with `/`: `events/event_date=2026-01-02/data_0.parquet`. */
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Of `events`: rows by the number of the window that last wrote them, as text. */
  readonly windows?: Readonly<Record<string, number>>;
}

/** A receipt with the number of its window, as the rows' `_dfinery_window` has it, and the rows that are still there. */
export interface LiveReceipt extends Receipt {
  readonly window: number;
  readonly rows_live: number;
  /** Rows whose key has a number, because another row has their id; receipts of older versions do not say. */
  readonly id_repeats?: number;
}

/** What a folder of datasets is: the only truth about it, replaced as one. Schema: schemas/manifest.json. */
export interface Manifest {
  readonly v: 1;
  /** Of the program that wrote it. */
  readonly writer: string;
  /** Of all datetimes without a zone; fixed by the first load. */
  readonly timezone: string | null;
  readonly tables: readonly TableName[];
  /** The columns of `events`, in the order of their positions. */
  readonly columns: readonly StoredColumn[];
  readonly files: readonly LiveFile[];
  readonly receipts: readonly LiveReceipt[];
  /** Event names seen, sorted; at most 1,000. */
  readonly event_names: readonly string[];
  readonly state: State | null;
}

/** The live files of `events`. */
export const eventFiles = (manifest: Manifest): LiveFile[] =>
  manifest.files.filter((file) => partitionOf(file.path).dataset === 'events');

const valid = compileSchema(schema);

/** Reads a manifest; undefined when there is none. Throws Failure for one that is damaged or newer than this program. */
export async function readManifest(path: string): Promise<Manifest | undefined> {
  const text = await readIfThere(path);
  return text === undefined ? undefined : parseManifest(text, path);
}

/** The text of a file, or undefined when there is no such file. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw configFailure(`${path} cannot be read (${codeOf(error) ?? 'unknown error'}): give its owner the right to.`, {
      cause: error,
      where: { file: path },
    });
  }
}

export function parseManifest(text: string, path: string): Manifest {
  const value = parseJson(text, path);
  checkManifest(value, path);
  return proved<Manifest>(value);
}

export function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw damaged(path, 'it is not JSON');
  }
}

/** Throws unless the value is a manifest of this version whose files lie within its datasets. */
export function checkManifest(value: unknown, path: string): void {
  const version = (value as { v?: unknown } | null)?.v;
  if (typeof version === 'number' && version > 1) {
    throw configFailure(`${path} has version ${version}, this program knows version 1: use the newer program.`);
  }
  if (!valid(value)) {
    // Stryker disable next-line ArrayDeclaration: what is refused has errors; this is for the compiler
    const [first] = valid.errors ?? [];
    throw damaged(path, `${first?.instancePath.slice(1) || 'it'} ${first?.message ?? 'is wrong'}`);
  }
  for (const file of proved<Manifest>(value).files) partitionOf(file.path);
}

const damaged = (path: string, why: string) =>
  configFailure(`${path} cannot be used: ${why}. Restore it, or load the days again into an empty folder.`, {
    where: { file: path },
  });

export async function writeManifest(path: string, manifest: Manifest): Promise<void> {
  await replaceFile(path, `${JSON.stringify(manifest)}\n`);
}
