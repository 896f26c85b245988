import { describe, expect, it } from 'vitest';
import { Scratch } from '../../../src/base/scratch.ts';

describe('memory for a while', () => {
  it('is zeroed and holds what is written, until it is given back: then nothing is left of it', () => {
    const scratch = new Scratch(1024);
    const numbers = new Uint32Array(scratch.buffer, 0, 256);
    expect(numbers).toEqual(new Uint32Array(256));
    numbers.fill(7);
    expect(numbers[255]).toBe(7);
    scratch.free();
    expect(scratch.buffer.byteLength).toBe(0);
    expect(numbers).toHaveLength(0);
  });

  it('may be released twice', () => {
    const scratch = new Scratch(8);
    scratch.free();
    scratch.free();
    expect(scratch.buffer.byteLength).toBe(0);
  });
});
