import { describe, expect, it } from 'vitest';
import { IdHashes } from '../../../src/cells/columns/id-hashes.ts';

const encoder = new TextEncoder();

describe('hashes of ids', () => {
  it('distinguish hundreds of thousands of similar ids, and count a repeated id once', () => {
    const hashes = new IdHashes();
    let count = 0;
    for (let i = 0; i < 60_000; i++) {
      for (const id of [`${i}`, `${i}:1`, `20260102-${i}`, `${String(i).padStart(12, '0')}-a`]) {
        add(hashes, id);
        count++;
      }
    }
    for (let i = 0; i < 60_000; i += 7) add(hashes, `20260102-${i}`);
    add(hashes, 'new');
    expect(hashes.distinctCount()).toBe(count + 1);
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

function add(hashes: IdHashes, id: string): void {
  const bytes = encoder.encode(id);
  hashes.add(bytes, 0, bytes.length);
}
