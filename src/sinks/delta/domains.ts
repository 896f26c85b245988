import manifestOfPackage from '../../../package.json' with { type: 'json' };
import schema from '../../../schemas/delta-table.json' with { type: 'json' };
import { configFailure } from '../../base/errors.ts';
import { compileSchema, proved } from '../../config/validate.ts';
import type { Receipt, State } from '../../extract/window.ts';
import { type ColumnChange, MAX_CHANGES } from '../../table/changes.ts';
import type { StoredColumn, TableName } from '../../table/columns.ts';
import { NO_HISTORY, parseHistory } from '../history.ts';
import type { Action } from './log/actions.ts';
import { damaged, parseJson } from './log/parse.ts';
import type { Snapshot } from './log/snapshot.ts';

/** The description of a table. Schema: schemas/delta-table.json. */
export interface TableInfo {
  readonly v: 1;
  /** Version of the program that wrote it. */
  readonly writer: string;
  readonly table: TableName;
  /** Number of the last window that is in it. */
  readonly window: number;
  /** Only of `events`: zone of all datetimes without one; fixed by the first load. */
  readonly timezone?: string | null;
  /** Of `events`: the tables that are kept. */
  readonly tables?: readonly TableName[];
  /** Of `events`: names its latest change. Versions alone do not: of two writers each may take its own for the next one. */
  readonly change_id?: string;
  /** Of the others: the version of `events` that they follow from, and the change that made it. */
  readonly source?: number;
  readonly source_change_id?: string;
}

/** A receipt with the number of its window but without its columns; the complete receipt is in the commit. */
export type KeptReceipt = Omit<Receipt, 'header' | 'columns'> & {
  readonly window: number;
  /** Rows whose key has a number, because another row has their id. */
  readonly id_repeats?: number;
};

export const WRITER: string = manifestOfPackage.version;
const TABLE = 'dfinery.table';
const STATE = 'dfinery.state';
const COLUMNS = 'dfinery.columns';
const WINDOW = 'dfinery.window.';
const CHANGES = 'dfinery.changes.';

const validOf = (name: 'table' | 'columns' | 'window') => compileSchema(schema.definitions[name]);
const VALID = { table: validOf('table'), columns: validOf('columns'), window: validOf('window') };

/** The metadata that this program stores in a table's log (domain metadata). `place`: for messages. */
export class Domains {
  readonly #snapshot: Snapshot;
  readonly #place: string;
  /** Parsed values of the latest text of each domain. */
  readonly #read = new Map<string, { readonly text: string; readonly value: unknown }>();

  constructor(snapshot: Snapshot, place: string) {
    this.#snapshot = snapshot;
    this.#place = place;
  }

  /** Undefined for a table of another program. Throws Failure for one of a later version of this program. */
  table(): TableInfo | undefined {
    return this.#once(TABLE, (text, where) => {
      const value = parseJson(text, where);
      const version = proved<{ v?: unknown } | null>(value)?.v;
      if (typeof version === 'number' && version > 1) {
        throw configFailure(`${this.#place} was written by a later version (${version}) of this program: update it.`);
      }
      return this.#valid<TableInfo>('table', value);
    });
  }

  columns(): readonly StoredColumn[] | undefined {
    return this.#once(COLUMNS, (text, where) => this.#valid<StoredColumn[]>('columns', parseJson(text, where)));
  }

  /** As it was stored, not parsed. */
  state(): State | undefined {
    return this.#once(STATE, (text, where) => proved<State | null>(parseJson(text, where))) ?? undefined;
  }

  /** In the order of their windows. */
  receipts(): KeptReceipt[] {
    const parse = (text: string, where: string) => this.#valid<KeptReceipt>('window', parseJson(text, where));
    return this.#below(WINDOW).map(([, name]) => proved<KeptReceipt>(this.#once(name, parse)));
  }

  /** Changes of columns, by the number of the window that made them, in order. */
  changes(): ReadonlyMap<number, readonly ColumnChange[]> {
    // Stryker disable next-line ArrayDeclaration,OptionalChaining: the name is one of those that are there
    const changes = (name: string) => this.#once(name, parseHistory)?.changes ?? [];
    return new Map(this.#below(CHANGES).map(([window, name]) => [window, changes(name)]));
  }

  /** Domains of windows by number, in order. */
  #below(prefix: string): [number, string][] {
    const names = [...this.#snapshot.domains.keys()].filter((name) => name.startsWith(prefix));
    return names.map((name): [number, string] => [Number(name.slice(prefix.length)), name]).sort(([a], [b]) => a - b);
  }

  /** The parsed text of a domain, cached by the text. */
  #once<T>(domain: string, parse: (text: string, where: string) => T): T | undefined {
    const text = this.#snapshot.domains.get(domain);
    if (text === undefined) return undefined;
    const known = this.#read.get(domain);
    // Stryker disable next-line ConditionalExpression: what is parsed again has the same value
    if (known?.text === text) return proved<T>(known.value);
    const value = parse(text, `${this.#place} (${domain})`);
    this.#read.set(domain, { text, value });
    return value;
  }

  #valid<T>(name: keyof typeof VALID, value: unknown): T {
    const valid = VALID[name];
    if (valid(value)) return proved<T>(value);
    const [first] = valid.errors ?? [];
    throw damaged(this.#place, `its ${name} ${first?.instancePath.slice(1) ?? ''} ${first?.message ?? 'is wrong'}`);
  }
}

const set = (domain: string, value: unknown): Action => ({
  domainMetadata: { domain, configuration: JSON.stringify(value), removed: false },
});

export const setTable = (info: Omit<TableInfo, 'v' | 'writer'>): Action =>
  set(TABLE, { v: 1, writer: WRITER, ...info });
export const setState = (state: State): Action => set(STATE, state);
export const setColumns = (columns: readonly StoredColumn[]): Action => set(COLUMNS, columns);
export const setReceipt = (receipt: KeptReceipt): Action => set(`${WINDOW}${receipt.window}`, receipt);
export const dropReceipt = (receipt: KeptReceipt): Action => ({
  domainMetadata: { domain: `${WINDOW}${receipt.window}`, configuration: JSON.stringify(receipt), removed: true },
});

export function keptReceipt(receipt: Receipt, window: number, idRepeats: number): KeptReceipt {
  const { header: _header, columns: _columns, ...rest } = receipt;
  return { ...rest, window, id_repeats: idRepeats };
}

/** Stores the column changes of a window; beyond a maximum, the oldest are dropped. */
export function setChanges(
  window: number,
  changes: readonly ColumnChange[],
  before: ReadonlyMap<number, readonly ColumnChange[]>,
): Action[] {
  if (changes.length === 0) return [];
  const kept = changes.slice(-MAX_CHANGES);
  const actions = [set(`${CHANGES}${window}`, { ...NO_HISTORY, changes: kept })];
  let count = kept.length;
  for (const [older, list] of [...before].reverse()) {
    count += list.length;
    if (count <= MAX_CHANGES) continue;
    const configuration = JSON.stringify({ ...NO_HISTORY, changes: list });
    actions.push({ domainMetadata: { domain: `${CHANGES}${older}`, configuration, removed: true } });
  }
  return actions;
}
