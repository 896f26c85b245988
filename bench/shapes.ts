import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, dayAt } from '../src/base/days.ts';
import { preparedDay, sizeOf } from './data.ts';

/** Prepared exports in the folder that the server serves. */
export interface Prepared {
  readonly dir: string;
  readonly files: readonly string[];
  readonly days: readonly string[];
  readonly bytes: number;
  readonly rows: number;
}

export interface Shape {
  readonly days: number;
  readonly rowsPerDay: number;
  /** Custom columns beside the 46 of every shape, of which a row fills one in fifty. */
  readonly sparseColumns: number;
}

const shape = (days: number, rowsPerDay: number, sparseColumns = 0): Shape => ({ days, rowsPerDay, sparseColumns });

/** What the end-to-end bench runs over: `DAYSxROWS`, rows a day. */
export const SHAPES: Readonly<Record<string, Shape>> = {
  '10x5000': shape(10, 5_000),
  '10x20000': shape(10, 20_000),
  '10x50000': shape(10, 50_000),
  '10x100000': shape(10, 100_000),
  '1x300000': shape(1, 300_000),
  '1x1000000': shape(1, 1_000_000),
  '1x20000-wide': shape(1, 20_000, 1_000),
};

/** Writes the exports of a shape, the last day three days ago. Kept between runs of one day. */
export async function prepare(name: string): Promise<Prepared> {
  const { days, rowsPerDay, sparseColumns } = SHAPES[name] ?? unknownShape(name);
  const last = addDays(dayAt(Date.now()), -3);
  const dir = join(tmpdir(), 'dfinery-elt-bench', name);
  const names = Array.from({ length: days }, (_, i) => addDays(last, i - days + 1));
  const files: string[] = [];
  for (const day of names) files.push(await preparedDay(dir, day, rowsPerDay, sparseColumns));
  const bytes = files.reduce((sum, file) => sum + sizeOf(file), 0);
  return { dir, files, days: names, bytes, rows: days * rowsPerDay };
}

export function unknownShape(name: string): never {
  throw new Error(`no such shape: ${name}; there are ${Object.keys(SHAPES).join(', ')}`);
}
