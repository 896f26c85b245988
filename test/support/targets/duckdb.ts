import { Place } from './place.ts';
import { query } from './query.ts';

/** A DuckDB file, and the days that are made for it. */
export class DuckDbFixture extends Place {
  constructor() {
    super('duckdb');
  }

  get file(): string {
    return this.place;
  }

  query(sql: string): Promise<Record<string, unknown>[]> {
    return query(this.place, sql);
  }
}
