import { once } from 'node:events';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { type CsvForm, csvOf } from '../data/csv.ts';
import { answer, type Exchange, writeHead } from '../exchange.ts';
import type { Fault, FaultOf, Scenario } from '../scenario.ts';
import type { ExportRequest } from './export-request.ts';
import { bytesOf, filesOf } from './serve-file.ts';

interface ExportParts {
  readonly fault: Fault | undefined;
  readonly limits: Record<string, string>;
  /** The header alone, whatever was asked. */
  readonly isEmpty: boolean;
}

/** Bytes that can be had again and again, and their number where it is known beforehand. */
interface Source {
  readonly chunks: () => Chunks;
  readonly length?: number;
}

const failText = (message: string) => JSON.stringify({ result: 'fail', message });

/** Sends the rows of an export, or what the fault makes of them. */
export async function sendExport(exchange: Exchange, request: ExportRequest, parts: ExportParts): Promise<void> {
  const { fault, limits } = parts;
  const { format } = exchange.service.scenario;
  exchange.seen.outcome = fault ? `fault:${fault.kind}` : 'ok';
  if (fault?.kind === 'json_200') return answer(exchange, 200, fault.content_type, failText(fault.message), limits);
  if (fault?.kind === 'empty_body') return answer(exchange, 200, format.content_type, '', limits);
  const plain = await sourceOf(exchange, request, parts);
  const gzip = gzipOf(exchange, format, fault);
  const headers = { 'Content-Type': format.content_type, ...limits, ...(gzip && { 'Content-Encoding': 'gzip' }) };
  const length = gzip === undefined ? await lengthOf(plain, format, fault) : undefined;
  writeHead(exchange, 200, length === undefined ? headers : { ...headers, 'Content-Length': String(length) });
  await sendBody(exchange, planOf(gzip ? { chunks: () => gzipped(plain.chunks(), gzip) } : plain, fault));
}

async function sourceOf(exchange: Exchange, request: ExportRequest, parts: ExportParts): Promise<Source> {
  const { service } = exchange;
  const form = csvForm(service.scenario.format, parts);
  const files = service.files === undefined ? [] : await filesOf(service.files, request.query.from, request.query.last);
  if (service.files === undefined)
    return withTail({ chunks: () => csvOf(service.dataset, request.query, form) }, parts.fault);
  if (files.length === 0) return { chunks: () => csvOf(service.dataset, { ...request.query, last: '' }, form) };
  // A body that ends early can end cleanly only where no length was announced.
  const whole = files.length === 1 && parts.fault?.kind !== 'cut' ? { length: files[0].size } : {};
  return withTail({ chunks: () => bytesOf(files), ...whole }, parts.fault);
}

function csvForm(format: Scenario['format'], { fault, isEmpty }: ExportParts): CsvForm {
  return {
    bom: format.bom || fault?.kind === 'bom',
    crlf: format.crlf || fault?.kind === 'crlf',
    finalNewline: format.final_newline,
    headerOnly: isEmpty,
    ...(fault?.kind === 'row_short' && { shortRow: fault.row }),
    ...(fault?.kind === 'row_long' && { longRow: fault.row }),
  };
}

/** Rows that end where their generator died, or the error that the service writes behind the rows it has already sent. */
function withTail(source: Source, fault: Fault | undefined): Source {
  if (fault?.kind === 'cut' && fault.by === 'generator')
    return { chunks: () => upTo(source.chunks(), fault, () => {}) };
  if (fault?.kind === 'endless') return { chunks: () => again(source) };
  if (fault?.kind !== 'json_tail') return source;
  const { after_rows, message } = fault;
  async function* chunks() {
    const place = { at: 'between_rows' as const, at_byte: undefined, after_rows: after_rows ?? 0 };
    yield* after_rows === undefined ? source.chunks() : upTo(source.chunks(), place, () => {});
    yield Buffer.from(failText(message));
  }
  return { chunks };
}

async function* again(source: Source): AsyncGenerator<Buffer, void, undefined> {
  for (;;) yield* source.chunks();
}

function gzipOf(exchange: Exchange, format: Scenario['format'], fault: Fault | undefined): GzipVariant | undefined {
  if (fault?.kind === 'gzip') return fault.variant;
  const isAccepted = /\bgzip\b/i.test(exchange.req.headers['accept-encoding'] ?? '');
  return format.gzip === 'always' || (format.gzip === 'accepted' && isAccepted) ? 'good' : undefined;
}

/** The `Content-Length` to declare; undefined for a chunked body. */
async function lengthOf(
  source: Source,
  format: Scenario['format'],
  fault: Fault | undefined,
): Promise<number | undefined> {
  const isDeclared = (format.framing === 'length' && fault?.kind !== 'endless') || fault?.kind === 'wrong_length';
  if (!isDeclared && source.length === undefined) return undefined;
  const length = source.length ?? (await measure(source.chunks()));
  return fault?.kind === 'wrong_length' ? Math.max(0, length + fault.by) : length;
}

const ENDINGS = { reset: 'reset', cut: 'clean', drop: 'drop', stall: 'stall' } as const satisfies Record<
  string,
  Ending
>;

function planOf(source: Source, fault: Fault | undefined): BodyPlan {
  switch (fault?.kind) {
    case 'reset':
    case 'cut':
    case 'drop':
    case 'stall': {
      if (fault.kind === 'cut' && fault.by === 'generator') return { chunks: source.chunks(), ending: () => 'clean' };
      let ending: Ending = 'clean';
      const chunks = upTo(source.chunks(), fault, () => {
        ending = ENDINGS[fault.kind];
      });
      const forMs = fault.kind === 'stall' && fault.for_s !== undefined ? { stallMs: fault.for_s * 1_000 } : {};
      return { chunks, ending: () => ending, ...forMs };
    }
    case 'slow':
      return { chunks: source.chunks(), ending: () => 'clean', bytesPerSecond: fault.bytes_per_s };
    case 'wrong_length':
      return { chunks: source.chunks(), ending: () => 'drop' };
    default:
      return { chunks: source.chunks(), ending: () => 'clean' };
  }
}

type Ending = 'clean' | 'reset' | 'drop' | 'stall';

/** A body to be sent: its bytes as they are made, how fast, and how it ends. `ending` is read once the bytes are out. */
interface BodyPlan {
  readonly chunks: Chunks;
  readonly ending: () => Ending;
  readonly bytesPerSecond?: number;
  readonly stallMs?: number;
}

/** Sends a body, never faster than the client reads it, and ends it as planned. */
async function sendBody(exchange: Exchange, plan: BodyPlan): Promise<void> {
  const { res, closed } = exchange;
  for await (const chunk of paced(exchange, plan)) {
    if (closed.aborted) return;
    exchange.seen.bytes += chunk.length;
    if (!res.write(chunk)) await once(res, 'drain', { signal: closed });
  }
  await end(exchange, plan);
}

async function end(exchange: Exchange, plan: BodyPlan): Promise<void> {
  const { res, closed, service } = exchange;
  const ending = plan.ending();
  if (ending === 'clean') {
    res.end();
    return;
  }
  await flushed(exchange);
  if (ending === 'reset') {
    // A reset that overtakes unread bytes is shown by Node's own client as an end, so a client nearby is let read first.
    await turns(TURNS_TO_READ);
    res.socket?.resetAndDestroy();
  } else if (ending === 'drop') res.socket?.destroySoon();
  else if (plan.stallMs !== undefined) {
    await service.clock.sleep(plan.stallMs, closed);
    res.end();
  }
}

const TURNS_TO_READ = 50;

/** Resolves when what was written has left for the socket, or the client has closed the connection. */
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
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

const PIECES_A_SECOND = 10;

async function* paced(exchange: Exchange, plan: BodyPlan): AsyncGenerator<Buffer, void, undefined> {
  if (plan.bytesPerSecond === undefined) return yield* plan.chunks;
  const piece = Math.max(1, Math.floor(plan.bytesPerSecond / PIECES_A_SECOND));
  for await (const chunk of plan.chunks) {
    for (let at = 0; at < chunk.length; at += piece) {
      yield chunk.subarray(at, at + piece);
      await exchange.service.clock.sleep(1_000 / PIECES_A_SECOND, exchange.closed);
    }
  }
}

type GzipVariant = 'good' | 'cut' | 'corrupt_trailer' | 'not_gzip';
const TRAILER_BYTES = 8;

/** The same body compressed; cut in its last third, with a trailer that does not fit, or only declared as compressed. */
async function* gzipped(chunks: Chunks, variant: GzipVariant): AsyncGenerator<Buffer, void, undefined> {
  if (variant === 'not_gzip') return yield* chunks;
  const source = Readable.from(chunks, { objectMode: false });
  const gzip = createGzip({ level: 1 });
  source.on('error', (error) => gzip.destroy(error));
  try {
    yield* variant === 'good' ? source.pipe(gzip) : withoutTail(source.pipe(gzip), variant);
  } finally {
    source.destroy();
    gzip.destroy();
  }
}

/** Holds the last bytes back: a cut body lacks them (and a few more), a corrupt one has others in their place. */
async function* withoutTail(chunks: AsyncIterable<Buffer>, variant: 'cut' | 'corrupt_trailer'): AsyncGenerator<Buffer> {
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

/** How many bytes a body has, without keeping any. */
async function measure(chunks: Chunks): Promise<number> {
  let length = 0;
  for await (const chunk of chunks) length += chunk.length;
  return length;
}

type Cut = Pick<FaultOf<'cut'>, 'at_byte' | 'at' | 'after_rows'>;

const QUOTE = 0x22;
const NEWLINE = 0x0a;
const INTO_A_ROW = 9;

/** Passes bytes on up to a cut, and stops there; `reached` is called if the body is that long. */
async function* upTo(chunks: Chunks, cut: Cut, reached: () => void): AsyncGenerator<Buffer, void, undefined> {
  const find = cut.at_byte === undefined ? rowFinder(cut.at, cut.after_rows) : byteFinder(cut.at_byte);
  for await (const chunk of chunks) {
    const end = find(chunk);
    if (end === -1) {
      yield chunk;
      continue;
    }
    if (end > 0) yield chunk.subarray(0, end);
    reached();
    return;
  }
}

type Chunks = AsyncIterable<Buffer> | Iterable<Buffer>;

/** Where in the next chunk the cut is; -1 when it comes later. */
type Finder = (chunk: Buffer) => number;

function byteFinder(at: number): Finder {
  let before = 0;
  return (chunk) => {
    const here = at - before;
    before += chunk.length;
    return here <= chunk.length ? here : -1;
  };
}

/** `between_rows`: right after the line end of data row n; `row_end`: right before it. `mid_row`: some bytes further. `mid_quote`: right after the first opening quote from there on. */
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
