import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SENTINEL } from '../../../src/csv/tokenizer.ts';
import { CsvMemory } from '../../../src/csv/wasm/csv-memory.ts';
import { BLOCK_MARGIN, BlockMemory } from '../../../src/sinks/rows/block-memory.ts';

const FILE_BYTES = 3 << 20;
/** A byte of the file tells where it stands. */
const bytes = Uint8Array.from({ length: FILE_BYTES }, (_, at) => (at * 31 + (at >> 8)) & 0xff);

let dir: string;
let file: number;
const opened: BlockMemory[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-rows-'));
  writeFileSync(join(dir, 'rows'), bytes);
  file = openSync(join(dir, 'rows'), 'r');
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const memory of opened.splice(0)) memory.release();
  closeSync(file);
  rmSync(dir, { recursive: true });
});

function memoryOf(reserved: number): BlockMemory {
  const memory = new BlockMemory(reserved);
  opened.push(memory);
  return memory;
}

describe.each([
  ['with SIMD', true],
  ['without SIMD', false],
])('the memory of blocks %s', (_, isFast) => {
  beforeEach(() => {
    if (!isFast) vi.spyOn(CsvMemory, 'open').mockReturnValue(undefined);
  });

  it('holds a block of any size with the sentinel and room for vector loads behind it', () => {
    const memory = memoryOf(1_000);
    for (const [from, to] of [
      [0, 10],
      [5, 5],
      [100_000, 900_000],
      [1_000_000, FILE_BYTES],
    ] as const) {
      const end = memory.read(file, from, to);
      expect(end - memory.start).toBe(to - from);
      expect(Buffer.compare(memory.bytes.subarray(memory.start, end), bytes.subarray(from, to))).toBe(0);
      expect(memory.bytes[end]).toBe(SENTINEL);
      expect(memory.bytes.length).toBeGreaterThanOrEqual(end + BLOCK_MARGIN);
    }
  });

  it('is not larger for a block that lies far back in its file', () => {
    const memory = memoryOf(1_000);
    const { length } = memory.bytes;
    memory.read(file, 2 << 20, (2 << 20) + 1_000);
    expect(memory.bytes.length).toBe(length);
  });

  it('says that a file has become shorter', () => {
    expect(() => memoryOf(0).read(file, FILE_BYTES - 10, FILE_BYTES + 1)).toThrow('became shorter');
  });
});

describe('what is kept free in front of a block', () => {
  it('is kept where there is SIMD', () => {
    expect(memoryOf(5_000).start).toBeGreaterThanOrEqual(5_000);
  });
});
