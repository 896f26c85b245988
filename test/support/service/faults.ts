import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Day } from '../../../src/base/days.ts';
import { settle } from '../clock.ts';

/** When a fault happens: all conditions that are given must hold. Without any it always happens. */
interface When {
  /** The nth export, counted from 1 since the faults were set. */
  readonly nth?: number | readonly number[];
  readonly after?: number;
  /** A requested day. */
  readonly day?: Day | readonly Day[];
  /** The first requested day. */
  readonly from?: Day;
  /** How often at most. */
  readonly times?: number;
}

/** Where a body ends: a byte of the CSV, or a place after a number of data rows (3). */
interface Place {
  readonly at_byte?: number;
  readonly at?: 'mid_row' | 'between_rows' | 'row_end';
  readonly after_rows?: number;
}

export type Fault = { readonly when?: When } & (
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly body?: string;
      readonly content_type?: string;
      readonly retry_after_s?: number;
    }
  /** `reset_in_s`: null sends no reset. */
  | { readonly kind: 'rate_limit'; readonly remaining?: number; readonly reset_in_s?: number | null }
  /** The connection is reset before any byte. */
  | { readonly kind: 'refuse' }
  | { readonly kind: 'json_200' }
  /** The same failure behind the rows. */
  | { readonly kind: 'json_tail' }
  | { readonly kind: 'row_short' }
  /** The body ends early and cleanly; `generator`: before it is compressed or measured, so that all its lengths are right. */
  | ({ readonly kind: 'cut'; readonly by?: 'connection' | 'generator' } & Place)
  /** The connection ends in the body: by an RST, by a FIN. */
  | ({ readonly kind: 'reset' | 'drop' } & Place)
  /** Nothing more comes. */
  | ({ readonly kind: 'stall' } & Place)
  /** A `Content-Length` that is off. */
  | { readonly kind: 'wrong_length'; readonly by: number }
  /** Compressed, and cut before its end. */
  | { readonly kind: 'gzip' }
);

interface RequestedDays {
  readonly from: Day;
  readonly to: Day;
}

/** Gives the fault of each request: the first whose conditions hold. */
export function faultRules(faults: readonly Fault[]) {
  const done = faults.map(() => 0);
  let nth = 0;
  return (days: RequestedDays): Fault | undefined => {
    nth++;
    const index = faults.findIndex(
      (fault, i) => done[i] < (fault.when?.times ?? Number.POSITIVE_INFINITY) && concerns(fault, days, nth),
    );
    if (index !== -1) done[index]++;
    return faults[index];
  };
}

function concerns({ when = {} }: Fault, { from, to }: RequestedDays, nth: number): boolean {
  if (when.nth !== undefined && ![when.nth].flat().includes(nth)) return false;
  if (when.after !== undefined && nth <= when.after) return false;
  if (when.from !== undefined && when.from !== from) return false;
  return when.day === undefined || [when.day].flat().some((day) => day >= from && day <= to);
}

export const FAILED = JSON.stringify({ result: 'fail', message: 'client_connection_closed' });

/** The body with what its generator does wrong. */
export function generated(body: Buffer, fault: Fault | undefined): Buffer {
  if (fault?.kind === 'cut' && fault.by === 'generator') return body.subarray(0, cutOf(body, fault));
  if (fault?.kind === 'row_short') return withShortRow(body);
  return fault?.kind === 'json_tail' ? Buffer.concat([body, Buffer.from(FAILED)]) : body;
}

/** Without its last cell in the first data row. */
function withShortRow(body: Buffer): Buffer {
  const lines = body.toString('utf8').split('\n');
  return Buffer.from(lines.map((line, i) => (i === 1 ? line.slice(0, line.lastIndexOf(',')) : line)).join('\n'));
}

/** Sends a body up to where the fault ends it. */
export async function sendBody(
  res: ServerResponse,
  closed: AbortSignal,
  body: Buffer,
  fault: Fault | undefined,
): Promise<void> {
  const isCut = fault?.kind === 'cut' ? fault.by !== 'generator' : /^(reset|drop|stall)$/.test(fault?.kind ?? '');
  const end = isCut ? cutOf(body, fault as Place) : undefined;
  if (!res.write(body.subarray(0, end))) await once(res, 'drain', { signal: closed });
  if (end !== undefined) return endEarly(res, fault?.kind);
  if (fault?.kind !== 'wrong_length') res.end();
  else {
    await flushed(res);
    res.socket?.destroySoon();
  }
}

const TURNS_TO_READ = 50;

async function endEarly(res: ServerResponse, kind: Fault['kind'] | undefined): Promise<void> {
  if (kind === 'cut') return void res.end();
  await flushed(res);
  if (kind === 'drop') res.socket?.destroySoon();
  if (kind !== 'reset') return;
  // A reset that overtakes unread bytes looks like an end to Node's client: it is allowed to read first.
  await settle(TURNS_TO_READ);
  res.socket?.resetAndDestroy();
}

/** Resolves when the written bytes have been handed to the socket, or the client has closed the connection. */
async function flushed(res: ServerResponse): Promise<void> {
  res.flushHeaders();
  await settle(1);
  await new Promise<void>((resolve) => {
    res.once('close', resolve);
    if (res.socket === null) resolve();
    else res.socket.write(Buffer.alloc(0), () => resolve());
  });
}

const QUOTE = 0x22;
const NEWLINE = 0x0a;
/** Bytes from the line end of data row n to the cut: before it, right after it, some bytes further. */
const BEHIND_LINE_END = { row_end: 0, between_rows: 1, mid_row: 10 };

/** The index at which a body ends; undefined for one that has not so many bytes or rows. */
function cutOf(body: Buffer, { at_byte, at = 'mid_row', after_rows = 3 }: Place): number | undefined {
  if (at_byte !== undefined) return at_byte <= body.length ? at_byte : undefined;
  let isQuoted = false;
  let lines = 0;
  for (const [i, byte] of body.entries()) {
    if (byte === QUOTE) isQuoted = !isQuoted;
    else if (byte === NEWLINE && !isQuoted && ++lines > after_rows) return i + BEHIND_LINE_END[at];
  }
  return undefined;
}
