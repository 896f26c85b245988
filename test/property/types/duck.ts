import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';

/** DuckDB in memory for the tests of a suite, with nothing but what is linked in; every query answers rows of texts. */
export class Duck {
  readonly #connection = connect();

  async run(sql: string): Promise<void> {
    await (await this.#connection).run(sql);
  }

  /** A table `cells(n, c)` of these texts. */
  async load(cells: readonly string[]): Promise<void> {
    await this.run('CREATE OR REPLACE TABLE cells (n INTEGER, c VARCHAR)');
    const appender = await (await this.#connection).createAppender('cells');
    cells.forEach((cell, n) => {
      appender.appendInteger(n);
      appender.appendVarchar(cell);
      appender.endRow();
    });
    appender.closeSync();
  }

  async rows(sql: string): Promise<(string | boolean | null)[][]> {
    const reader = await (await this.#connection).runAndReadAll(sql);
    return reader.getRowsJson() as (string | boolean | null)[][];
  }

  /** For each cell the answer of one expression over `c`. */
  async column(expression: string): Promise<(string | boolean | null)[]> {
    return (await this.rows(`SELECT ${expression} FROM cells ORDER BY n`)).map((row) => row[0]);
  }
}

async function connect(): Promise<DuckDBConnection> {
  const instance = await DuckDBInstance.create(':memory:', { autoinstall_known_extensions: 'false', threads: '1' });
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'America/Los_Angeles'");
  return connection;
}
