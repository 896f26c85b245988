import { type CsvForm, csvOf } from '../data/csv.ts';
import { answer, type Exchange, writeHead } from '../exchange.ts';
import type { Fault } from '../faults/fault.ts';
import type { Scenario } from '../scenario.ts';
import { type BodyPlan, type Ending, type GzipVariant, gzipped, measure, sendBody } from './body.ts';
import { type Chunks, upTo } from './cut.ts';
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
    headerOnly: isEmpty || fault?.kind === 'header_only',
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
    const place = { at: 'between_rows' as const, after_rows: after_rows ?? 0 };
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
