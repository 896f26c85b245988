import { mix, within } from './data/hash.ts';

export type Operation = 'export' | 'delete';

/** When a fault happens: all conditions given must be met. */
interface When {
  readonly operation?: 'export' | 'delete';
  readonly nth?: number | readonly number[];
  readonly after?: number;
  readonly day?: string | readonly string[];
  readonly external_id?: string | readonly string[];
  readonly probability: number;
  readonly times?: number;
}

/** Where a body ends: a byte of the plain CSV, or a place looked for after so many data rows. */
interface Cut {
  readonly at_byte?: number;
  readonly at: 'mid_row' | 'mid_quote' | 'between_rows' | 'row_end';
  readonly after_rows: number;
}

/** The parameters of each kind of fault; keys as in schemas/scenario.json. */
interface Kinds {
  readonly status: { readonly status: number; readonly body?: string; readonly content_type?: string };
  readonly rate_limit: {
    readonly remaining: number;
    readonly reset: 'given' | 'absent';
    readonly reset_in_s: number;
  };
  readonly refuse: object;
  readonly reset: Cut;
  /** `by` the generator: what follows the rows (compression, a length) is whole. */
  readonly cut: Cut & { readonly by: 'connection' | 'generator' };
  readonly drop: Cut;
  readonly stall: Cut & { readonly for_s?: number };
  readonly slow: { readonly bytes_per_s: number };
  readonly json_200: { readonly message: string; readonly content_type: string };
  readonly json_tail: { readonly message: string; readonly after_rows?: number };
  readonly empty_body: object;
  readonly gzip: { readonly variant: 'good' | 'cut' | 'corrupt_trailer' | 'not_gzip' };
  readonly wrong_length: { readonly by: number };
  readonly endless: object;
  readonly bom: object;
  readonly crlf: object;
  readonly row_short: { readonly row: number };
  readonly row_long: { readonly row: number };
  readonly redirect: { readonly status: 301 | 302 | 303 | 307 | 308; readonly location?: string };
  readonly code: { readonly code: string; readonly status?: number; readonly message?: string };
  readonly cut_after: object;
}

export type FaultKind = keyof Kinds;
export type FaultOf<K extends FaultKind> = {
  [N in K]: { readonly kind: N; readonly when: When } & Readonly<Kinds[N]>;
}[K];
export type Fault = FaultOf<FaultKind>;

/** What a rule is held against. */
export interface RequestFacts {
  readonly operation: Operation;
  readonly from?: string;
  readonly to?: string;
  readonly externalId?: string;
}

/** The faults of a scenario, in order: the first whose conditions hold happens. Counts requests from when the faults were set. */
export class FaultRules {
  readonly #faults: readonly Fault[];
  readonly #seed: number;
  readonly #done: number[];
  readonly #count = { export: 0, delete: 0 };

  constructor(faults: readonly Fault[], seed: number) {
    this.#faults = faults;
    this.#seed = seed;
    this.#done = faults.map(() => 0);
  }

  /** Counts the request; returns the fault that it meets, if any. */
  next(request: RequestFacts): Fault | undefined {
    const nth = ++this.#count[request.operation];
    const index = this.#faults.findIndex((fault, i) => {
      const chance = mix(mix(this.#seed, i), nth);
      return this.#done[i] < (fault.when.times ?? Number.POSITIVE_INFINITY) && applies(fault, request, nth, chance);
    });
    if (index === -1) return undefined;
    this.#done[index]++;
    return this.#faults[index];
  }
}

const EXPORT_ONLY: ReadonlySet<string> = new Set([
  'json_200',
  'json_tail',
  'empty_body',
  'gzip',
  'endless',
  'bom',
  'crlf',
  'row_short',
  'row_long',
  'cut',
  'drop',
  'slow',
  'wrong_length',
]);
const DELETE_ONLY: ReadonlySet<string> = new Set(['code', 'cut_after']);

function applies(fault: Fault, request: RequestFacts, nth: number, chance: number): boolean {
  const { when } = fault;
  if (when.operation !== undefined && when.operation !== request.operation) return false;
  if ((request.operation === 'export' ? DELETE_ONLY : EXPORT_ONLY).has(fault.kind)) return false;
  if (when.nth !== undefined && ![when.nth].flat().includes(nth)) return false;
  if (when.after !== undefined && nth <= when.after) return false;
  return concerns(when, request) && (when.probability >= 1 || within(chance, when.probability));
}

function concerns(when: When, request: RequestFacts): boolean {
  const { from = '', to = '' } = request;
  if (when.day !== undefined && ![when.day].flat().some((day) => day >= from && day <= to)) return false;
  return when.external_id === undefined || [when.external_id].flat().includes(request.externalId ?? '');
}
