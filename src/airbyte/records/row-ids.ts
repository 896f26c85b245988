import { createHash } from 'node:crypto';
import { CellText, type CsvRow } from '../../cells/csv/row.ts';
import { type HeaderColumn, LOG_ID } from '../../cells/header.ts';

/** What stands behind the log id in the id of an item: its position, of as many digits as 64 bits hold. */
const POSITION = /^:0*(\d{1,18})$/;

/** The ids of the row that `refill` read last. The examples are of the second row with the id `log-1:007`. */
export class RowIds {
  /** The id of the row (`log-1:007`): the cell of the id column, or without one `hash:` and a digest. */
  readonly id: CellText = new CellText();
  /** Counts, from 1, the rows of the day with this id (`2`). */
  occurrence = 1;
  /** The id of the row's event (`log-1`); undefined for a row without one. */
  logId: CellText | undefined;
  readonly #idColumnNumber: number;
  readonly #logIdColumnNumber: number;
  readonly #logIdText = new CellText();
  readonly #names: readonly Buffer[];
  /** The numbers of all columns, in the byte order of their names. */
  readonly #sortedColumnNumbers: readonly number[];
  readonly #text = new CellText();
  readonly #rowCountById: Map<string, number> | undefined;

  /** `rowCountById` counts the rows of all files of the day; undefined: no id occurs twice. */
  constructor(header: readonly HeaderColumn[], idColumn: string, rowCountById?: Map<string, number>) {
    const sources = header.map((column) => column.source);
    this.#idColumnNumber = sources.indexOf(idColumn);
    this.#logIdColumnNumber = sources.indexOf(LOG_ID);
    this.#names = sources.map((source) => Buffer.from(source));
    this.#sortedColumnNumbers = sources.map((_, i) => i).sort((a, b) => Buffer.compare(this.#names[a], this.#names[b]));
    this.#rowCountById = rowCountById;
  }

  refill(row: CsvRow): void {
    const idCellNumber = row.cellOf(this.#idColumnNumber);
    const logIdCellNumber = row.cellOf(this.#logIdColumnNumber);
    if (idCellNumber >= 0) this.id.read(row, idCellNumber);
    else this.id.set(Buffer.from(`hash:${this.#digestOf(row)}`));
    if (logIdCellNumber >= 0) this.#logIdText.read(row, logIdCellNumber);
    this.logId = logIdCellNumber >= 0 ? this.#logIdText : undefined;
    if (this.#rowCountById === undefined) return;
    const id = this.id.latin1;
    this.occurrence = (this.#rowCountById.get(id) ?? 0) + 1;
    this.#rowCountById.set(id, this.occurrence);
  }

  /** The item position (`7`), without leading zeros; undefined for a row that is no item. */
  get position(): string | undefined {
    const id = this.id.latin1;
    const logId = this.logId?.latin1;
    return logId !== undefined && id.startsWith(logId) ? POSITION.exec(id.slice(logId.length))?.[1] : undefined;
  }

  /** SHA-256 over the non-empty cells of a row, in the byte order of their names: `3:age2:31`, with lengths in bytes. */
  #digestOf(row: CsvRow): string {
    const hash = createHash('sha256');
    for (const columnNumber of this.#sortedColumnNumbers) {
      const cellNumber = row.cellOf(columnNumber);
      if (cellNumber < 0) continue;
      this.#text.read(row, cellNumber);
      const { content } = this.#text;
      const name = this.#names[columnNumber];
      hash.update(`${name.length}:`).update(name).update(`${content.length}:`).update(content);
    }
    return hash.digest('hex');
  }
}
