import { internalError } from '../../base/errors.ts';
import type { LedgerKey } from './key.ts';
import { type Chained, GENESIS, type LedgerLine } from './line.ts';

/** Appends to the chain: every line carries the code of the line before and its own, which covers both. */
export class Chain {
  readonly #key: LedgerKey;
  #head: string;

  constructor(key: LedgerKey, head: string = GENESIS) {
    this.#key = key;
    this.#head = head;
  }

  /** Code of the last line. */
  get head(): string {
    return this.#head;
  }

  /** The text of one line, without its end. */
  seal(line: LedgerLine): string {
    const text = JSON.stringify({ ...line, prev: this.#head });
    this.#head = this.#key.mac(text.slice(0, -1));
    return `${text.slice(0, -1)},"mac":"${this.#head}"}`;
  }
}

const SEALED = /^(\{.*),"mac":"([0-9a-f]{64})"\}$/s;
const KINDS = new Set<unknown>(['open', 'before', 'after', 'purge_only', 'purging', 'purge', 'access', 'close']);

/** The line, or the reason why it is not what was written. */
export type Unsealed = { readonly line: Chained } | { readonly problem: string };

/** Verifies a line's own code, but not its place in the chain. */
export function unseal(text: string, key: LedgerKey): Unsealed {
  const [, covered, mac] = SEALED.exec(text) ?? [];
  if (covered === undefined || mac === undefined) return { problem: 'is not a line of a ledger' };
  if (key.mac(covered) !== mac) return { problem: 'was changed, or was written under another key' };
  const line: unknown = JSON.parse(text);
  return isLine(line) ? { line } : { problem: 'was written by a later version' };
}

function isLine(value: unknown): value is Chained {
  if (typeof value !== 'object' || value === null) throw internalError('A sealed line of the ledger holds no object.');
  return 'v' in value && value.v === 1 && 'kind' in value && KINDS.has(value.kind);
}
