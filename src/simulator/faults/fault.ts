// This folder: the faults that a scenario can make the embedded service show.

/** When a fault happens: all conditions given must be met. */
export interface When {
  readonly operation?: 'export' | 'delete';
  readonly nth?: number | readonly number[];
  readonly after?: number;
  readonly day?: string | readonly string[];
  readonly least_days?: number;
  readonly unfiltered: boolean;
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

/** What each kind of fault is told; keys as in schemas/scenario.json. */
interface Kinds {
  readonly status: {
    readonly status: number;
    readonly body?: string;
    readonly content_type?: string;
  };
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
  readonly slow: {
    readonly bytes_per_s: number;
  };
  readonly json_200: {
    readonly message: string;
    readonly content_type: string;
  };
  readonly json_tail: {
    readonly message: string;
    readonly after_rows?: number;
  };
  readonly empty_body: object;
  readonly header_only: object;
  readonly gzip: {
    readonly variant: 'good' | 'cut' | 'corrupt_trailer' | 'not_gzip';
  };
  readonly wrong_length: {
    readonly by: number;
  };
  readonly endless: object;
  readonly bom: object;
  readonly crlf: object;
  readonly row_short: {
    readonly row: number;
  };
  readonly row_long: {
    readonly row: number;
  };
  readonly redirect: {
    readonly status: 301 | 302 | 303 | 307 | 308;
    readonly location?: string;
  };
  readonly code: {
    readonly code: string;
    readonly status?: number;
    readonly message?: string;
  };
  readonly cut_after: object;
}

export type FaultKind = keyof Kinds;
export type FaultOf<K extends FaultKind> = {
  [N in K]: { readonly kind: N; readonly when: When } & Readonly<Kinds[N]>;
}[K];
export type Fault = FaultOf<FaultKind>;
