import { describe, expect, it } from 'vitest';
import { IdSet } from '../../../src/schema/id-set.ts';

const encoder = new TextEncoder();

describe('the id set', () => {
  it('tells apart hundreds of thousands of ids that are much alike, and knows them again', () => {
    const set = new IdSet();
    const add = (text: string) => {
      const bytes = encoder.encode(`:${text}:`);
      set.add(bytes, 1, bytes.length - 1);
    };
    let count = 0;
    for (let i = 0; i < 60_000; i++) {
      for (const id of [`${i}`, `${i}:1`, `20260102-${i}`, `${String(i).padStart(12, '0')}-a`]) {
        add(id);
        count++;
      }
    }
    expect(set.distinct).toBe(count);
    for (let i = 0; i < 60_000; i += 7) add(`20260102-${i}`);
    expect(set.distinct).toBe(count);
    add('new');
    expect(set.distinct).toBe(count + 1);
  });

  it('tells apart ids that differ in one byte, in their order or in their length, wherever they stand', () => {
    const set = new IdSet();
    const ids = new Set<string>();
    for (let length = 1; length <= 13; length++) {
      const same = 'x'.repeat(length);
      for (let at = 0; at < length; at++) {
        for (const letter of 'yzXY') ids.add(`${same.slice(0, at)}${letter}${same.slice(at + 1)}`);
      }
      ids.add(same);
      ids.add('\u0000'.repeat(length));
    }
    for (const id of ['abcd', 'dcba', 'abcdefgh', 'efghabcd', 'abcdefghi', 'efghabcdi']) ids.add(id);
    for (const around of ['', 'a', '12345']) {
      for (const id of ids) {
        const bytes = encoder.encode(`${around}${id}${around}`);
        set.add(bytes, around.length, bytes.length - around.length);
      }
    }
    expect(set.distinct).toBe(ids.size);
  });

  it('tells an empty set from one id', () => {
    const set = new IdSet();
    expect(set.distinct).toBe(0);
    set.add(new Uint8Array(4), 0, 4);
    expect(set.distinct).toBe(1);
  });

  it('knows of none any more once its memory is given back', () => {
    const set = new IdSet();
    for (let i = 0; i < 100_000; i++) add(set, `${i}`);
    expect(set.distinct).toBe(100_000);
    set.end();
    for (let i = 0; i < 100_000; i++) add(set, `later ${i}`);
    expect(set.distinct).toBe(0);
  });
});

function add(set: IdSet, text: string): void {
  const bytes = encoder.encode(text);
  set.add(bytes, 0, bytes.length);
}
