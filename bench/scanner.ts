import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parse } from 'csv-parse';
import type { ColumnEdits } from '../src/cells/columns/column-edits.ts';
import { Scanner } from '../src/cells/columns/scanner.ts';
import { median, printGoal } from './measure.ts';
import { prepared } from './prepared.ts';

const SHARE = 4;

/** Measures tokenizing with the classification of every cell, against csv-parse on the same bytes. */
export async function benchScanner(): Promise<void> {
  const data = await prepared(10);
  const files = data.files.slice(0, SHARE);
  const [ours, theirs]: [number[], number[]] = [[], []];
  // The first run is not measured: a real run scans for minutes, so that the time for compiling does not matter.
  for (const warm of [scan, csvParse]) await warm(readFileSync(files[0] ?? ''));
  for (const file of files) {
    const body = readFileSync(file);
    ours.push(await timed(() => scan(body)));
    theirs.push(await timed(() => csvParse(body)));
  }
  const mbs = (seconds: number) => `${(data.bytes / data.files.length / 1e6 / seconds).toFixed(0)} MB/s`;
  const [a, b] = [median(ours), median(theirs)];
  printGoal({
    name: 'scan, against csv-parse',
    ratio: b / a,
    wanted: ['>=', 8],
    detail: `${mbs(a)} against ${mbs(b)}`,
  });
}

async function timed(work: () => void | Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
}

/** Size of the chunks that a socket delivers. */
const CHUNK_BYTES = 64 * 1024;

function* chunksOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += CHUNK_BYTES) yield body.subarray(at, at + CHUNK_BYTES);
}

/** Scans a body in chunks of the size that a socket delivers. */
export function scan(body: Buffer, edits?: ColumnEdits): void {
  const scanner = new Scanner({ requireSystem: true, edits });
  for (const chunk of chunksOf(body)) scanner.push(chunk);
  scanner.finish();
}

async function csvParse(body: Buffer): Promise<void> {
  const parser = parse();
  parser.on('data', () => {});
  await pipeline(Readable.from(chunksOf(body)), parser);
}
