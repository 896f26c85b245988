import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Day } from '../../src/base/days.ts';
import { literal } from '../../src/base/sql.ts';
import { readFiles, type TargetName } from '../support/targets/place.ts';
import { query } from '../support/targets/query.ts';
import { rowText } from './truth.ts';

/** The rows of a place as its readers see them: by `event_date`, each as one text, sorted. */
export type Stored = ReadonlyMap<Day, readonly string[]>;

const OURS = new Set(['event_date', '_key', '_rescued', '_loaded_at']);

/** A place, read without the code that wrote it, and changed as its owner might. */
export class OwnedPlace {
  readonly target: TargetName;
  readonly path: string;

  constructor(target: TargetName, dir: string) {
    this.target = target;
    this.path = join(dir, target === 'duckdb' ? 'events.duckdb' : target);
  }

  get words(): [string, string] {
    return [this.target, this.path];
  }

  get exists(): boolean {
    return this.target === 'duckdb' ? existsSync(this.path) : existsSync(join(this.path, 'events'));
  }

  async stored(): Promise<Stored> {
    const rows = this.exists ? await this.#rows() : [];
    const days = new Map<Day, string[]>();
    for (const row of rows) {
      const day = String(row.event_date);
      const text = rowText(Object.entries(row).filter(([name]) => !OURS.has(name)));
      days.set(day, [...(days.get(day) ?? []), text]);
    }
    for (const texts of days.values()) texts.sort();
    return days;
  }

  #rows(): Promise<Record<string, unknown>[]> {
    const sql = 'SELECT * REPLACE (event_date::VARCHAR AS event_date) FROM events';
    if (this.target === 'duckdb') return query(this.path, sql);
    return readFiles(this.path, this.target === 'delta', 'events', sql);
  }

  /** Removes a day, as people do who want the space back. */
  async removeDay(day: Day): Promise<void> {
    if (this.target === 'duckdb') await query(this.path, `DELETE FROM events WHERE event_date = ${literal(day)}`);
    else rmSync(join(this.path, 'events', `event_date=${day}`), { recursive: true, force: true });
  }

  backUp(to: string): void {
    rmSync(to, { recursive: true, force: true });
    cpSync(this.path, to, { recursive: true });
  }

  restore(from: string): void {
    rmSync(this.path, { recursive: true, force: true });
    rmSync(`${this.path}.wal`, { force: true });
    cpSync(from, this.path, { recursive: true });
  }
}
