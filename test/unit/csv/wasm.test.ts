import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import { columnEdits } from '../../../src/cells/columns/column-edits.ts';
import { HashKey } from '../../../src/cells/columns/hash-key.ts';
import { Scanner } from '../../../src/cells/columns/scanner.ts';
import { CsvMemory } from '../../../src/cells/csv/csv-memory.ts';
import { DATA_AT, JOBS_AT, TABLES_AT } from '../../../src/cells/csv/layout.ts';
import { scanIn } from '../../support/scan.ts';

describe('the memory of a WebAssembly module', () => {
  it('keeps its content when it grows, and is reused after its release', () => {
    const memory = CsvMemory.open(1_000);
    memory.bytes.set([1, 2, 3]);
    memory.grow(3_000_000);
    expect(memory.bytes.length).toBeGreaterThanOrEqual(3_000_000);
    expect([...memory.bytes.subarray(0, 3)]).toEqual([1, 2, 3]);
    memory.release();
    expect(CsvMemory.open(10)).toBe(memory);
  });

  it('grows from more than 2 GiB too, where twice as much is more than there can be', () => {
    const memory = CsvMemory.open(0);
    memory.grow(2.5 * 2 ** 30);
    memory.grow(memory.bytes.length + 1);
    expect(memory.bytes.length).toBeGreaterThan(3 * 2 ** 30);
  });

  it('has one user at a time, also after a double release', () => {
    const memory = CsvMemory.open(10);
    memory.release();
    memory.release();
    expect(CsvMemory.open(10)).toBe(memory);
    expect(CsvMemory.open(10)).not.toBe(memory);
  });

  it('is not kept when it was large', () => {
    const memory = CsvMemory.open(20_000_000);
    memory.release();
    expect(CsvMemory.open(10)).not.toBe(memory);
  });

  it('is kept when it has grown for the lines of a block', () => {
    const memory = CsvMemory.open(3_000_000);
    memory.grow(6_000_000);
    memory.release();
    expect(CsvMemory.open(10) === memory).toBe(true);
  });

  it('is kept with few others', () => {
    const memories = Array.from({ length: 20 }, () => CsvMemory.open(8_000_000));
    for (const memory of memories) memory.release();
    const reused = new Set(memories.map(() => CsvMemory.open(10)).filter((memory) => memories.includes(memory)));
    expect([...reused].reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThanOrEqual(40 * 2 ** 20);
    expect(reused.size).toBeGreaterThan(1);
  });

  it('holds no hash key and no hash of a value for its next user', () => {
    const left = ['a', 'b'].map((letter) => {
      const edits = columnEdits([], ['mail'], new HashKey(new Secret(letter.repeat(32))));
      const rows = 'x,erna@example.com\n'.repeat(20);
      scanIn(new Scanner({ requireSystem: false, edits }), Buffer.from(`id,mail\n${rows}`));
      const memory = CsvMemory.open(10);
      const bytes = memory.bytes.slice(TABLES_AT, DATA_AT);
      memory.release();
      return Buffer.from(bytes);
    });
    expect(left[0].length).toBe(DATA_AT - TABLES_AT);
    expect(left[0].equals(left[1])).toBe(true);
    expect(left[0].includes('erna@')).toBe(false);
  });

  it('holds no hash key once a body was broken or ended early', () => {
    const edits = columnEdits([], ['mail'], new HashKey(new Secret('a'.repeat(32))));
    for (const body of ['id,mail\nx,y,z\n', 'id,mail\nx,y\n']) {
      const memory = CsvMemory.open(10);
      memory.release();
      const scanner = new Scanner({ requireSystem: false, edits });
      const keyOf = () => memory.bytes.slice(TABLES_AT, JOBS_AT).some((byte) => byte !== 0);
      expect(keyOf()).toBe(true);
      if (body.includes('z')) expect(() => scanner.push(Buffer.from(body))).toThrow('too many cells');
      else scanner.push(Buffer.from(body));
      scanner.close();
      expect(keyOf()).toBe(false);
      expect(CsvMemory.open(10)).toBe(memory);
      scanner.close();
      expect(CsvMemory.open(10)).not.toBe(memory);
      memory.release();
    }
  });

  it('does not change results of a scan when the next scan reuses it', () => {
    const scanner = new Scanner({ requireSystem: false });
    scanner.push(Buffer.from('id,memo\n'));
    scanner.push(Buffer.from('x,first\n'));
    const { tail } = scanner.finish();
    scanIn(new Scanner({ requireSystem: false }), Buffer.from('id,memo\ny,another one\n'));
    expect(Buffer.concat(tail).toString()).toContain('x,first\n');
  });

  it('has no effect on the next body with what the last one left behind it', () => {
    scanIn(new Scanner({ requireSystem: false }), Buffer.from('three,df_unified_id\nx,y\n'));
    const scanner = new Scanner({ requireSystem: false });
    expect(() => scanIn(scanner, Buffer.from('[1,23,'))).toThrow('text that starts with [, as a JSON message does');
  });
});
