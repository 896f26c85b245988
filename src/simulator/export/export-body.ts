import { once } from 'node:events';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { nextTurn } from '../../base/clock.ts';
import { csvOf } from '../data/csv.ts';
import type { RowQuery } from '../data/row-query.ts';
import { answer, type Exchange, writeHead } from '../exchange.ts';
import type { Fault, FaultOf, Scenario } from '../scenario.ts';

type Chunks = AsyncIterable<Buffer> | Iterable<Buffer>;

const failText = (message: string) => JSON.stringify({ result: 'fail', message });

/** Sends the rows of an export, or what the fault makes of them; if `isEmpty` the header alone. */
export async function sendExport(
  exchange: Exchange,
  query: RowQuery,
  fault: Fault | undefined,
  isEmpty: boolean,
): Promise<void> {
  const { service, seen, req } = exchange;
  const { format } = service.scenario;
  const limits = service.limits.export.headers();
  seen.outcome = fault ? `fault:${fault.kind}` : 'ok';
  if (fault?.kind === 'json_200')
    return answer(exchange, 200, { type: fault.content_type, body: failText(fault.message) }, limits);
  if (fault?.kind === 'empty_body') return answer(exchange, 200, { type: format.content_type, body: '' }, limits);
  const { bodyOf = () => undefined } = service.options;
  // If others give the bodies, days for which they have none are empty.
  const generated = service.options.bodyOf === undefined ? query : { ...query, last: '' };
  const form = {
    bom: format.bom || fault?.kind === 'bom',
    crlf: format.crlf || fault?.kind === 'crlf',
    finalNewline: format.final_newline,
    headerOnly: isEmpty,
    shortRow: fault?.kind === 'row_short' ? fault.row : undefined,
    longRow: fault?.kind === 'row_long' ? fault.row : undefined,
  };
  const rows = () => bodyOf(query.from, query.last) ?? csvOf(service.dataset, generated, form);
  const body = () => withTail(rows, fault);
  const gzip = gzipOf(format, fault, /\bgzip\b/i.test(req.headers['accept-encoding'] ?? ''));
  const length = gzip === undefined ? await lengthOf(body, format, fault) : undefined;
  writeHead(exchange, 200, {
    'Content-Type': format.content_type,
    ...limits,
    ...(gzip && { 'Content-Encoding': 'gzip' }),
    ...(length !== undefined && { 'Content-Length': String(length) }),
  });
  await sendBody(exchange, gzip ? gzipped(body(), gzip) : body(), fault);
}

/** Yields the rows with the fault of their generator: an early end, no end, or a failure as JSON behind them. */
async function* withTail(rows: () => Chunks, fault: Fault | undefined): AsyncGenerator<Buffer, void, undefined> {
  if (fault?.kind === 'json_tail') {
    const { after_rows, message } = fault;
    yield* after_rows === undefined ? rows() : upTo(rows(), rowFinder('between_rows', after_rows));
    yield Buffer.from(failText(message));
  } else if (fault?.kind === 'cut' && fault.by === 'generator') yield* upTo(rows(), finderOf(fault));
  else
    do yield* rows();
    while (fault?.kind === 'endless');
}

type GzipVariant = FaultOf<'gzip'>['variant'];

function gzipOf(format: Scenario['format'], fault: Fault | undefined, isAccepted: boolean): GzipVariant | undefined {
  if (fault?.kind === 'gzip') return fault.variant;
  return format.gzip === 'always' || (format.gzip === 'accepted' && isAccepted) ? 'good' : undefined;
}

/** The `Content-Length` to declare; undefined for a chunked body. */
async function lengthOf(
  body: () => Chunks,
  format: Scenario['format'],
  fault: Fault | undefined,
): Promise<number | undefined> {
  const isDeclared = (format.framing === 'length' && fault?.kind !== 'endless') || fault?.kind === 'wrong_length';
  if (!isDeclared) return undefined;
  let length = 0;
  for await (const chunk of body()) length += chunk.length;
  return fault?.kind === 'wrong_length' ? Math.max(0, length + fault.by) : length;
}

const PIECES_A_SECOND = 10;

/** Sends a body, never faster than the client reads it, up to where the fault ends it. */
async function sendBody(exchange: Exchange, body: Chunks, fault: Fault | undefined): Promise<void> {
  const { res, closed, service, seen } = exchange;
  const cut = cutOf(fault);
  const find = cut === undefined ? () => -1 : finderOf(cut);
  for await (const chunk of body) {
    const end = find(chunk);
    const bytes = end === -1 ? chunk : chunk.subarray(0, end);
    const step = fault?.kind === 'slow' ? Math.ceil(fault.bytes_per_s / PIECES_A_SECOND) : Math.max(1, bytes.length);
    for (let at = 0; at < bytes.length; at += step) {
      if (closed.aborted) return;
      const piece = bytes.subarray(at, at + step);
      seen.bytes += piece.length;
      if (!res.write(piece)) await once(res, 'drain', { signal: closed });
      if (fault?.kind === 'slow') await service.clock.sleep(1_000 / PIECES_A_SECOND, closed);
    }
    if (cut !== undefined && end !== -1) return endAt(exchange, cut);
  }
  if (fault?.kind !== 'wrong_length') res.end();
  else {
    await flushed(exchange);
    res.socket?.destroySoon();
  }
}

type Cut = FaultOf<'cut' | 'reset' | 'drop' | 'stall'>;

/** The fault, if it is one that ends the body on its way to the client. */
function cutOf(fault: Fault | undefined): Cut | undefined {
  if (fault?.kind === 'cut') return fault.by === 'connection' ? fault : undefined;
  return fault?.kind === 'reset' || fault?.kind === 'drop' || fault?.kind === 'stall' ? fault : undefined;
}

const TURNS_TO_READ = 50;

/** Ends a body early: cleanly, or without an end once its bytes have left. */
async function endAt(exchange: Exchange, cut: Cut): Promise<void> {
  const { res, closed, service } = exchange;
  if (cut.kind !== 'cut') await flushed(exchange);
  if (cut.kind === 'reset') {
    // Node's own client shows a reset that overtakes unread bytes as an end; a client on this machine is therefore
    // allowed to read first.
    await turns(TURNS_TO_READ);
    res.socket?.resetAndDestroy();
  } else if (cut.kind === 'drop') res.socket?.destroySoon();
  else if (cut.kind === 'cut') res.end();
  else if (cut.for_s !== undefined) {
    await service.clock.sleep(cut.for_s * 1_000, closed);
    res.end();
  }
}

/** Resolves when the written bytes have been handed to the socket, or the client has closed the connection. */
async function flushed({ res }: Exchange): Promise<void> {
  res.flushHeaders();
  await turns(1);
  await new Promise<void>((resolve) => {
    res.once('close', resolve);
    if (res.socket === null) resolve();
    else res.socket.write(Buffer.alloc(0), () => resolve());
  });
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextTurn();
}

/** Yields the compressed body, or a variant: cut in its last third, with a wrong trailer, or not compressed at all. */
async function* gzipped(body: Chunks, variant: GzipVariant): AsyncGenerator<Buffer, void, undefined> {
  if (variant === 'not_gzip') return yield* body;
  const gzip = pipeline(Readable.from(body, { objectMode: false }), createGzip({ level: 1 }), () => {});
  yield* variant === 'good' ? gzip : withoutTrailer(gzip, variant);
}

const TRAILER_BYTES = 8;

/** Holds the last bytes back: a cut body lacks them (and a few more), a corrupt one has other bytes in their place. */
async function* withoutTrailer(
  chunks: AsyncIterable<Buffer>,
  variant: 'cut' | 'corrupt_trailer',
): AsyncGenerator<Buffer> {
  const held = variant === 'cut' ? TRAILER_BYTES * 2 : TRAILER_BYTES;
  let tail: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const all: Buffer = Buffer.concat([tail, chunk]);
    const keep = Math.max(0, all.length - held);
    if (keep > 0) yield all.subarray(0, keep);
    tail = all.subarray(keep);
  }
  if (variant === 'corrupt_trailer') yield Buffer.from(tail.map((byte) => byte ^ 0x5a));
}

/** Finds the cut in the next chunk: its index, or -1 if it comes later. */
type Finder = (chunk: Buffer) => number;

async function* upTo(chunks: Chunks, find: Finder): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of chunks) {
    const end = find(chunk);
    yield end === -1 ? chunk : chunk.subarray(0, end);
    if (end !== -1) return;
  }
}

function finderOf({ at_byte, at, after_rows }: Cut): Finder {
  if (at_byte === undefined) return rowFinder(at, after_rows);
  let left = at_byte;
  return (chunk) => {
    const here = left;
    left -= chunk.length;
    return here <= chunk.length ? here : -1;
  };
}

const QUOTE = 0x22;
const NEWLINE = 0x0a;
const INTO_A_ROW = 9;

/**
 * Finds the place of a cut. `between_rows`: right after the line end of data row n; `row_end`: right before it.
 * `mid_row`: some bytes further. `mid_quote`: right after the first opening quote from there on.
 */
function rowFinder(at: Cut['at'], afterRows: number): Finder {
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
      if (at === 'mid_quote' ? byte === QUOTE && isQuoted : ++into > INTO_A_ROW) return i + 1;
    }
    return -1;
  };
}
