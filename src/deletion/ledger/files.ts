import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const NAME = /^ledger-(\d{6,})-([0-9A-Za-z]+)\.jsonl$/;

/** One run's file in a ledger's folder. */
export interface LedgerFile {
  readonly path: string;
  readonly name: string;
  /** Place in the chain, from 1. */
  readonly number: number;
  readonly run: string;
}

/** The files of a folder in the order of the chain. */
export function ledgerFiles(folder: string): LedgerFile[] {
  return readdirSync(folder)
    .flatMap((name) => fileOf(folder, name))
    .sort((a, b) => a.number - b.number);
}

export const fileName = (number: number, run: string): string =>
  `ledger-${String(number).padStart(6, '0')}-${run}.jsonl`;

export function fileOf(folder: string, name: string): LedgerFile[] {
  const [, number, run] = NAME.exec(name) ?? [];
  return number && run ? [{ path: join(folder, name), name, number: Number(number), run }] : [];
}
