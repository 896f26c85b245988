import { describe, expect, it } from 'vitest';
import { IdHashes } from '../../../src/cells/columns/id-hashes.ts';

const encoder = new TextEncoder();

describe('hashes of ids', () => {
  it('distinguish hundreds of thousands of similar ids, and count a repeated id once', () => {
    const hashes = new IdHashes();
    let count = 0;
    for (let i = 0; i < 60_000; i++) {
      for (const id of [`${i}`, `${i}:1`, `20260102-${i}`, `${String(i).padStart(12, '0')}-a`]) {
        add(hashes, id, ':');
        count++;
      }
    }
    for (let i = 0; i < 60_000; i += 7) add(hashes, `20260102-${i}`, '');
    add(hashes, 'new', '');
    expect(hashes.distinctCount()).toBe(count + 1);
  });

  it('distinguish ids that differ in one byte, in order or in length, at any position', () => {
    const hashes = new IdHashes();
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
    for (const around of ['', 'a', '12345']) for (const id of ids) add(hashes, id, around);
    expect(hashes.distinctCount()).toBe(ids.size);
  });

  it('cannot count more than eight million', () => {
    const hashes = new IdHashes();
    const bytes = new Uint8Array(4);
    const count = new Int32Array(bytes.buffer);
    for (let i = 0; i <= 1 << 23; i++) {
      count[0] = i;
      hashes.add(bytes, 0, 4);
    }
    expect(hashes.distinctCount()).toBeUndefined();
  });
});

function add(hashes: IdHashes, text: string, around: string): void {
  const bytes = encoder.encode(`${around}${text}${around}`);
  hashes.add(bytes, around.length, bytes.length - around.length);
}
