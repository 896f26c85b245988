import type { Day } from '../../../src/base/days.ts';
import type { NameFilter } from '../../../src/simulator/dataset.ts';

/** What an export asks for. */
export interface RequestedExport {
  readonly from: Day;
  readonly to: Day;
  readonly events: NameFilter;
  readonly properties: NameFilter;
}

/** Where a body ends: at a byte of the CSV, or at a place after a number of data rows. */
interface BodyEnd {
  readonly at_byte?: number;
  readonly at?: 'mid_row' | 'between_rows' | 'row_end';
  readonly after_rows?: number;
}

/** An answer without data: a `message` of the service, else this body, else a page. An undefined header is not sent. */
export interface Refusal {
  readonly kind: 'status';
  readonly status: number;
  readonly message?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

export type Fault =
  | Refusal
  /** The connection is reset before any byte. */
  | { readonly kind: 'refuse' }
  /** Other data, sent as they were well. */
  | { readonly kind: 'body'; readonly change: (csv: string) => string | Uint8Array }
  /** The body ends early and cleanly: all its lengths are right. */
  | ({ readonly kind: 'cut' } & BodyEnd)
  /** In the body: an RST, a FIN, and nothing more for ever. */
  | ({ readonly kind: 'reset' | 'drop' | 'stall' } & BodyEnd)
  /** The `Content-Length` is larger than the body. */
  | { readonly kind: 'wrong_length' }
  /** Compressed, and cut before its end. */
  | { readonly kind: 'gzip' };

/** The fault of an export, if it has one; `nth` counts exports from 1 since the rule was set. */
export type FaultRule = (request: RequestedExport, nth: number) => Promise<Fault | undefined> | Fault | undefined;

export const onNth =
  (wanted: number, fault: Fault): FaultRule =>
  (_request, nth) =>
    nth === wanted ? fault : undefined;

/** For exports that have the day. */
export const onDay =
  (day: Day, fault: Fault): FaultRule =>
  ({ from, to }) =>
    day >= from && day <= to ? fault : undefined;

export const refusal = (status: number, more: Partial<Refusal> = {}): Refusal => ({ kind: 'status', status, ...more });

/** A limit that ends at `resetAt` (ms UTC); it may be unknown. */
export const limited = (resetAt?: number): Refusal => ({
  kind: 'status',
  status: 429,
  message: 'too_many_api_requests',
  headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': resetAt?.toString() },
});

/** Twenty rows, and nothing more. */
export const STALL: Fault = { kind: 'stall', after_rows: 20 };

const QUOTE = 0x22;
const NEWLINE = 0x0a;
/** Bytes from the line end of data row n to the cut: before it, right after it, some bytes further. */
const BEHIND_LINE_END = { row_end: 0, between_rows: 1, mid_row: 10 };

/** The body up to where a fault ends it; whole if it has not so many bytes or rows. */
export function upTo(body: Buffer, { at_byte, at = 'mid_row', after_rows = 3 }: BodyEnd): Buffer {
  if (at_byte !== undefined) return body.subarray(0, at_byte);
  let isQuoted = false;
  let lines = 0;
  for (const [i, byte] of body.entries()) {
    if (byte === QUOTE) isQuoted = !isQuoted;
    else if (byte === NEWLINE && !isQuoted && ++lines > after_rows) return body.subarray(0, i + BEHIND_LINE_END[at]);
  }
  return body;
}
