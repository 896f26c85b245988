import { describe, expect, it } from 'vitest';
import { Scratch } from '../../../src/base/scratch.ts';

describe('temporary memory', () => {
  it('is zeroed, holds what is written, and is cleared when it is freed', () => {
    const scratch = new Scratch(1024);
    const numbers = new Uint32Array(scratch.buffer, 0, 256);
    expect(numbers).toEqual(new Uint32Array(256));
    numbers.fill(7);
    expect(numbers[255]).toBe(7);
    scratch.free();
    expect(scratch.buffer.byteLength).toBe(0);
    expect(numbers).toHaveLength(0);
  });

  it('may be freed twice', () => {
    const scratch = new Scratch(8);
    scratch.free();
    scratch.free();
    expect(scratch.buffer.byteLength).toBe(0);
  });
});
