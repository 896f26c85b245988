import { describe, expect, it } from 'vitest';
import { CsvMemory } from '../../../src/csv/wasm/csv-memory.ts';

describe('the memory of a module', () => {
  it('keeps what it holds when it grows, and is used again once it was released', () => {
    const memory = CsvMemory.open(1_000);
    if (memory === undefined) throw new Error('this machine has no SIMD');
    memory.bytes.set([1, 2, 3]);
    memory.grow(3_000_000);
    expect(memory.bytes.length).toBeGreaterThanOrEqual(3_000_000);
    expect([...memory.bytes.subarray(0, 3)]).toEqual([1, 2, 3]);
    memory.release();
    expect(CsvMemory.open(10)).toBe(memory);
  });

  it('goes to one user alone, however often it was released', () => {
    const memory = CsvMemory.open(10);
    memory?.release();
    memory?.release();
    expect(CsvMemory.open(10)).toBe(memory);
    expect(CsvMemory.open(10)).not.toBe(memory);
  });

  it('is not kept once it was large', () => {
    const memory = CsvMemory.open(20_000_000);
    memory?.release();
    expect(CsvMemory.open(10)).not.toBe(memory);
  });
});
