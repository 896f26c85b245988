import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, dayAt } from '../src/base/days.ts';
import { preparedDay, sizeOf } from './data.ts';

/** Prepared exports of 1,000,000 rows in all, in the folder that the server serves. */
export interface Prepared {
  readonly dir: string;
  readonly files: readonly string[];
  readonly days: readonly string[];
  readonly bytes: number;
}

export const ROWS = 1_000_000;

/** The same rows as so many days, the last of them three days ago. Kept between runs. */
export async function prepared(days: number): Promise<Prepared> {
  const last = addDays(dayAt(Date.now()), -3);
  const dir = join(tmpdir(), 'dfinery-elt-bench', `${days}-days`);
  const names = Array.from({ length: days }, (_, i) => addDays(last, i - days + 1));
  const files: string[] = [];
  for (const day of names) files.push(await preparedDay(dir, day, ROWS / days));
  return { dir, files, days: names, bytes: files.reduce((sum, file) => sum + sizeOf(file), 0) };
}
