import { type RunHistory, type RunRecord, unended } from '../../../table/runs.ts';
import type { Engine } from '../../sql/engine/engine.ts';
import { hasTable } from './state.ts';

const CREATE_RUNS = `CREATE TABLE IF NOT EXISTS _dfinery_runs (
  v INTEGER, number BIGINT, began TIMESTAMPTZ, ended TIMESTAMPTZ, exit_code INTEGER, cause VARCHAR, version VARCHAR,
  rows BIGINT, windows BIGINT, exports BIGINT, bytes BIGINT)`;
const VERSION = 1;
/** Runs looked at for those that never ended. */
const LATEST = 100;

/** The runs of a DuckDB file, in its table `_dfinery_runs`; a file of a former version gets the table with its next run. */
export class RunTable implements RunHistory {
  readonly #engine: Engine;
  #number = 0;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  begin(began: string, version: string): Promise<string[]> {
    return this.#engine.transaction(async () => {
      await this.#engine.run(CREATE_RUNS);
      const { n } = await this.#engine.row('SELECT coalesce(max(number), 0) + 1 AS n FROM _dfinery_runs');
      this.#number = Number(n);
      const before = await readRuns(this.#engine, LATEST);
      await this.#engine.run(
        'INSERT INTO _dfinery_runs (v, number, began, version, rows, windows, exports, bytes) VALUES ($1, $2, $3, $4, 0, 0, 0, 0)',
        [VERSION, this.#number, began, version],
      );
      return unended(before);
    });
  }

  async end(ended: string, outcome: Parameters<RunHistory['end']>[1]): Promise<void> {
    const { exitCode, cause, rows, windows, exports, bytes } = outcome;
    await this.#engine.run(
      `UPDATE _dfinery_runs SET ended = $2, exit_code = $3, cause = $4, rows = $5, windows = $6, exports = $7, bytes = $8
      WHERE number = $1`,
      [this.#number, ended, exitCode, cause, rows, windows, exports, bytes],
    );
  }
}

/** The runs of a file, oldest first, of very many the latest; none for a file without the table. */
export async function readRuns(engine: Engine, most: number): Promise<RunRecord[]> {
  if (!(await hasTable(engine, '_dfinery_runs'))) return [];
  const instant = (column: string) => `strftime(timezone('UTC', ${column}), '%Y-%m-%dT%H:%M:%S.%gZ') AS ${column}`;
  const rows = await engine.rows(
    `SELECT ${instant('began')}, ${instant('ended')}, exit_code, cause, version, rows, windows, exports, bytes
    FROM (FROM _dfinery_runs ORDER BY number DESC LIMIT ${most}) ORDER BY number`,
  );
  return rows.map((row) => ({
    began: String(row.began),
    ended: row.ended === null ? null : String(row.ended),
    exitCode: row.exit_code === null ? null : Number(row.exit_code),
    cause: row.cause === null ? null : String(row.cause),
    version: String(row.version),
    rows: Number(row.rows),
    windows: Number(row.windows),
    exports: Number(row.exports),
    bytes: Number(row.bytes),
  }));
}
