import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { configFailure, type Failure } from '../../base/errors.ts';

const NAME = /^ledger-(\d{6,})-([0-9A-Za-z]+)\.jsonl$/;

/** One run's file in a ledger's folder. */
export interface LedgerFile {
  readonly path: string;
  readonly name: string;
  /** Place in the chain, from 1. */
  readonly number: number;
  readonly run: string;
}

/** The files of a folder in the order of the chain. Throws a configuration failure for a link, or for anything else that is no file. */
export function ledgerFiles(folder: string): LedgerFile[] {
  const files = readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const found = fileOf(folder, entry.name);
    if (found.length > 0 && !entry.isFile()) throw noFile(join(folder, entry.name));
    return found;
  });
  return files.sort((a, b) => a.number - b.number);
}

const noFile = (path: string): Failure =>
  configFailure(`${path} has the name of a ledger and is no regular file: put the ledger itself there.`);

export const fileName = (number: number, run: string): string =>
  `ledger-${String(number).padStart(6, '0')}-${run}.jsonl`;

export function fileOf(folder: string, name: string): LedgerFile[] {
  const [, number, run] = NAME.exec(name) ?? [];
  return number && run ? [{ path: join(folder, name), name, number: Number(number), run }] : [];
}
