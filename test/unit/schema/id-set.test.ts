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
