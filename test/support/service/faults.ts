import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Day } from '../../../src/base/days.ts';

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

export type Chunks = AsyncIterable<Buffer> | Iterable<Buffer>;

export const FAILED = JSON.stringify({ result: 'fail', message: 'client_connection_closed' });

/** The body with what its generator does wrong. */
export async function* generated(body: () => Chunks, fault: Fault | undefined): AsyncGenerator<Buffer> {
  if (fault?.kind === 'cut' && fault.by === 'generator') yield* upTo(body(), finderOf(fault));
  else if (fault?.kind === 'row_short') for await (const chunk of body()) yield withShortRow(chunk);
  else yield* body();
  if (fault?.kind === 'json_tail') yield Buffer.from(FAILED);
}

/** Without its last cell in the first data row. */
function withShortRow(chunk: Buffer): Buffer {
  const lines = chunk.toString('utf8').split('\n');
  return Buffer.from(lines.map((line, i) => (i === 1 ? line.slice(0, line.lastIndexOf(',')) : line)).join('\n'));
}

export async function* compressed(body: Chunks, variant: 'good' | 'cut'): AsyncGenerator<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of Readable.from(body, { objectMode: false }).pipe(createGzip({ level: 1 })))
    chunks.push(chunk);
  const whole = Buffer.concat(chunks);
  yield variant === 'good' ? whole : whole.subarray(0, -16);
}

/** Sends a body, never faster than the client reads it, up to where the fault ends it. */
export async function sendBody(
  res: ServerResponse,
  closed: AbortSignal,
  body: Chunks,
  fault: Fault | undefined,
): Promise<void> {
  const isCut = fault?.kind === 'cut' ? fault.by !== 'generator' : /^(reset|drop|stall)$/.test(fault?.kind ?? '');
  const find = isCut ? finderOf(fault as Place) : () => -1;
  for await (const chunk of body) {
    const end = find(chunk);
    const bytes = end === -1 ? chunk : chunk.subarray(0, end);
    if (closed.aborted) return;
    if (!res.write(bytes)) await once(res, 'drain', { signal: closed });
    if (end !== -1) return endEarly(res, fault?.kind);
  }
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
  await turns(TURNS_TO_READ);
  res.socket?.resetAndDestroy();
}

/** Resolves when the written bytes have been handed to the socket, or the client has closed the connection. */
async function flushed(res: ServerResponse): Promise<void> {
  res.flushHeaders();
  await turns(1);
  await new Promise<void>((resolve) => {
    res.once('close', resolve);
    if (res.socket === null) resolve();
    else res.socket.write(Buffer.alloc(0), () => resolve());
  });
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Finds the cut in the next chunk: its index, or -1 if it comes later. */
type Finder = (chunk: Buffer) => number;

async function* upTo(chunks: Chunks, find: Finder): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    const end = find(chunk);
    yield end === -1 ? chunk : chunk.subarray(0, end);
    if (end !== -1) return;
  }
}

function finderOf({ at_byte, at = 'mid_row', after_rows = 3 }: Place): Finder {
  if (at_byte === undefined) return rowFinder(at, after_rows);
  let distance = at_byte;
  return (chunk) => {
    const here = distance;
    distance -= chunk.length;
    return here <= chunk.length ? here : -1;
  };
}

const QUOTE = 0x22;
const NEWLINE = 0x0a;
const INTO_A_ROW = 9;

/**
 * `between_rows`: right after the line end of data row n; `row_end`: right before it. `mid_row`: some bytes further.
 */
function rowFinder(at: NonNullable<Place['at']>, afterRows: number): Finder {
  let isQuoted = false;
  let lines = 0;
  let into = 0;
  return (chunk) => {
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      if (byte === QUOTE) isQuoted = !isQuoted;
      else if (byte === NEWLINE && !isQuoted) lines++;
      if (lines <= afterRows) continue;
      if (at === 'row_end') return i;
      if (at === 'between_rows') return i + 1;
      if (++into > INTO_A_ROW) return i + 1;
    }
    return -1;
  };
}
