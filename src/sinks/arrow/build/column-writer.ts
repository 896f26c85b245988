import { civilSeconds, FIELDS, MICROS, OFFSET, parseTime } from '../../../types/calendar.ts';
import { DATETIME_ZONED } from '../../../types/evidence.ts';
import type { ColumnType } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';
import type { ColumnStore } from './column-store.ts';
import { eachElement } from './list-elements.ts';
import { doubleOf, writeLong, writeMicros } from './numbers.ts';
import { itemText, textOf, widenedItem, widenedText } from './widened-text.ts';

const QUOTE = 34;
const BACKSLASH = 92;
const LOWER_CASE = 32;
const LOWER_T = 0x74;
const DAY_SECONDS = 86_400;
const ITEM_BYTES = 8;
const encoder = new TextEncoder();

/** How the text of a cell becomes a value: as assembly/columns.ts has it, then what only TypeScript does. */
const TEXT = 1;
const LONG = 2;
const DOUBLE = 3;
const BOOLEAN = 4;
const DATE = 5;
const DATETIME = 6;
const CODE = 7;
const LIST = 9;
const WIDENED = 10;
/** Of a column without a value. */
export const SKIP = 0;
/** Of cells that SIMD leaves to TypeScript. */
export const OTHER = 8;

const WAYS: Readonly<Record<ColumnType, number>> = {
  string: TEXT,
  long: LONG,
  double: DOUBLE,
  boolean: BOOLEAN,
  date: DATE,
  datetime: DATETIME,
  'string[]': LIST,
  'long[]': LIST,
  'double[]': LIST,
};

/** Writes cells that are read as one type into a column of the same or a wider one. */
export class ColumnWriter {
  readonly #store: ColumnStore;
  readonly #way: number;
  readonly #from: ColumnType;
  readonly #zone: Zone | undefined;
  /** Of lists: how elements that are no texts are written. */
  readonly #item: ColumnWriter | undefined;
  readonly #numberText: (b: Uint8Array, start: number, end: number) => string;
  /** Bytes that elements of lists and widened texts took. */
  extraBytes = 0;

  constructor(store: ColumnStore, from: ColumnType, to: ColumnType, zone: Zone | undefined) {
    this.#store = store;
    this.#from = from;
    this.#zone = zone;
    const isWidened = to === 'string' && from !== 'string';
    const itemType = isWidened ? undefined : itemOf(to);
    this.#way = isWidened ? WIDENED : WAYS[to];
    this.#item =
      // Stryker disable next-line LogicalOperator,ConditionalExpression: lists have both, others neither; the second is for the compiler
      itemType === undefined || store.items === undefined
        ? undefined
        : new ColumnWriter(store.items, itemType, itemType, undefined);
    this.#numberText = from === 'double[]' ? widenedItem : itemText;
  }

  /** How SIMD writes cells that need no look at them before: one of the numbers of assembly/columns.ts. */
  get plainWay(): number {
    if (this.#way === TEXT && this.#store.shape.kind === 'dictionary') return CODE;
    return Math.min(this.#way, OTHER);
  }

  /** Of the column that it writes to. */
  get state(): number {
    return this.#store.state;
  }

  /** Row `row` is the cell [start, end), which fits and is not absent. */
  write(row: number, b: Uint8Array, start: number, end: number): void {
    const store = this.#store;
    switch (this.#way) {
      case TEXT:
        store.setText(row, b, start, end);
        break;
      case LONG:
        writeLong(b, start, end, store.memory.words, store.placeOf(row));
        store.setValid(row);
        break;
      case DOUBLE:
        store.memory.doubles[store.placeOf(row)] = doubleOf(b, start, end);
        store.setValid(row);
        break;
      case BOOLEAN:
        if ((b[start] | LOWER_CASE) === LOWER_T) store.setTrue(row);
        store.setValid(row);
        break;
      case DATE:
        parseTime(b, start, end);
        store.memory.words[store.placeOf(row)] = civilSeconds() / DAY_SECONDS;
        store.setValid(row);
        break;
      case DATETIME:
        this.#writeDatetime(row, b, start, end);
        store.setValid(row);
        break;
      case LIST:
        this.#writeList(row, b, start, end);
        break;
      default:
        this.#writeText(row, widenedText(b, start, end, this.#from, this.#zone));
    }
  }

  /** Row `row` is the text [start, end), whatever the cells are read as. */
  writeAsText(row: number, b: Uint8Array, start: number, end: number): void {
    this.#store.setText(row, b, start, end);
  }

  #writeDatetime(row: number, b: Uint8Array, start: number, end: number): void {
    const zone = this.#zone;
    const form = parseTime(b, start, end);
    let seconds = civilSeconds();
    if (zone !== undefined && (form & DATETIME_ZONED) === 0) {
      this.#store.memory.learnHour(zone, seconds);
      seconds = zone.toUtc(seconds);
    } else if (zone !== undefined) seconds -= FIELDS[OFFSET];
    writeMicros(seconds, FIELDS[MICROS], this.#store.memory.words, this.#store.placeOf(row));
  }

  #writeText(row: number, text: string): void {
    const bytes = encoder.encode(text);
    this.extraBytes += bytes.length;
    this.#store.setText(row, bytes, 0, bytes.length);
  }

  #writeList(row: number, b: Uint8Array, start: number, end: number): void {
    const store = this.#store;
    const { items } = store;
    const item = this.#item;
    // Stryker disable next-line LogicalOperator,ConditionalExpression: lists have both; this is for the compiler
    if (items === undefined || item === undefined) return;
    const isText = items.shape.kind === 'text';
    // Every element may make the memory grow, which would replace its bytes.
    const list = b.slice(start, end);
    store.beginList(row);
    eachElement(list, 0, list.length, (from, to, isNull) => {
      const at = items.addItem();
      this.extraBytes += ITEM_BYTES;
      if (isNull) return;
      if (!isText) item.write(at, list, from, to);
      else if (list[from] !== QUOTE) item.#writeText(at, this.#numberText(list, from, to));
      else if (list.subarray(from, to).includes(BACKSLASH)) item.#writeText(at, JSON.parse(textOf(list, from, to)));
      else items.setText(at, list, from + 1, to - 1);
    });
    store.endList();
  }
}

function itemOf(type: ColumnType): ColumnType | undefined {
  if (type === 'string[]') return 'string';
  if (type === 'long[]') return 'long';
  return type === 'double[]' ? 'double' : undefined;
}
