import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, dayAt } from '../src/base/days.ts';
import { DATA_VERSION, preparedDay, type ROW_KINDS, sizeOf } from './data.ts';

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
  readonly kind: keyof typeof ROW_KINDS;
  /** Number of custom columns beside those of the kind, of which a row fills one in fifty. */
  readonly sparseColumns: number;
}

const sparse = (days: number, rowsPerDay: number, sparseColumns = 0): Shape => ({
  ...{ days, rowsPerDay },
  kind: 'sparse',
  sparseColumns,
});
const filled = (days: number, rowsPerDay: number): Shape => ({ days, rowsPerDay, kind: 'filled', sparseColumns: 0 });

/** The shapes of the end-to-end bench: `DAYSxROWS` (rows for each day) and one of the two kinds of rows. */
export const SHAPES: Readonly<Record<string, Shape>> = {
  '10x5000': sparse(10, 5_000),
  '10x20000': sparse(10, 20_000),
  '10x50000': sparse(10, 50_000),
  '10x100000': sparse(10, 100_000),
  '30x20000': sparse(30, 20_000),
  '1x300000': sparse(1, 300_000),
  '1x1000000': sparse(1, 1_000_000),
  '10x5000-filled': filled(10, 5_000),
  '10x50000-filled': filled(10, 50_000),
  '10x100000-filled': filled(10, 100_000),
  '30x20000-filled': filled(30, 20_000),
  '1x300000-filled': filled(1, 300_000),
  '1x20000-wide': sparse(1, 20_000, 1_000),
};

/** Writes the exports of a shape; the last day is three days ago. They are kept between runs of one day. */
export async function prepare(name: string): Promise<Prepared> {
  const { days, rowsPerDay, kind, sparseColumns } = SHAPES[name] ?? unknownShape(name);
  const last = addDays(dayAt(Date.now()), -3);
  const dir = join(tmpdir(), `dfinery-elt-bench-${DATA_VERSION}`, name);
  const names = Array.from({ length: days }, (_, i) => addDays(last, i - days + 1));
  const files: string[] = [];
  for (const day of names) files.push(await preparedDay(dir, day, rowsPerDay, kind, sparseColumns));
  const bytes = files.reduce((sum, file) => sum + sizeOf(file), 0);
  return { dir, files, days: names, bytes, rows: days * rowsPerDay };
}

export function unknownShape(name: string): never {
  throw new Error(`no such shape: ${name}; there are ${Object.keys(SHAPES).join(', ')}`);
}
