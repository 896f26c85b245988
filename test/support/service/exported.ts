import { parse } from 'csv-parse/sync';
import type { Simulator } from '../../../src/simulator/index.ts';
import { dayBody, exportRequest } from './simulator.ts';

const DAY = '2026-01-10';

export type Cells = Map<string, string>;

/** The rows of an export, each a map of its non-empty cells. */
function rowsOf(csv: string): Cells[] {
  const [header, ...rows]: string[][] = parse(csv, { columns: false });
  return rows.map(
    (row) => new Map(row.map((cell, i): [string, string] => [header[i], cell]).filter(([, cell]) => cell !== '')),
  );
}

export async function exported(simulator: Simulator, body: object = dayBody(DAY)): Promise<Cells[]> {
  return rowsOf(await (await exportRequest(simulator, body)).text());
}

export const headerOf = async (simulator: Simulator, body: object) =>
  (parse(await (await exportRequest(simulator, body)).text(), { columns: false, to: 1 }) as string[][])[0];

export const sorted = (rows: Iterable<ReadonlyMap<string, string>>) =>
  [...rows].map((row) => JSON.stringify([...row].sort())).sort();
