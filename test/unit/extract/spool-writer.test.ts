import fs, { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SpoolWriter, spoolError } from '../../../src/extract/spool/spool-writer.ts';
import { openBelow, systemError, withCall } from '../../support/system-calls.ts';

const MB = 1 << 20;
let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-writer-'));
  path = join(dir, 'rows.part');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** Bytes none of which is like the one a buffer before it. */
const bytes = (length: number, seed = 0): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8) + seed) % 251));
const handle = async (): Promise<object> => {
  const probe = await open(dir, 'r');
  await probe.close();
  return Object.getPrototypeOf(probe) as object;
};

describe('a spool file', () => {
  it.each([
    ['nothing', []],
    ['less than a buffer', [10, 0, 7]],
    ['a buffer exactly', [MB]],
    ['a buffer exactly, in pieces, and more', [MB - 1, 1, 1]],
    ['a byte more than a buffer', [MB + 1]],
    ['pieces across the ends of many buffers', [MB - 5, 10, 3 * MB, 1, 2 * MB - 6, MB, 100]],
  ])('holds what was written, with its CRC: %s', async (_what, sizes) => {
    const chunks = sizes.map((size, i) => bytes(size, i));
    const writer = await SpoolWriter.create(path, dir);
    for (const chunk of chunks) {
      const waiting = writer.write(Buffer.from(chunk));
      if (waiting !== undefined) await waiting;
    }
    const whole = Buffer.concat(chunks);
    expect(await writer.finish()).toBe(crc32(whole));
    expect(readFileSync(path).equals(whole)).toBe(true);
    expect(openBelow(dir)).toEqual([]);
  });

  it('is complete on a disk that writes half of a buffer at a time', async () => {
    const half: Parameters<typeof withCall>[2] = (write, part, at, length) =>
      write(part, at, Math.ceil(Number(length) / 2));
    const whole = bytes(2 * MB + 7);
    await withCall(await handle(), 'write', half, async () => {
      const writer = await SpoolWriter.create(path, dir);
      await writer.write(Buffer.from(whole));
      expect(await writer.finish()).toBe(crc32(whole));
    });
    expect(readFileSync(path).equals(whole)).toBe(true);
  });

  it('delays its writer only when a buffer is full', async () => {
    const writer = await SpoolWriter.create(path, dir);
    expect(writer.write(bytes(MB))).toBeUndefined();
    expect(writer.write(bytes(0))).toBeUndefined();
    const waiting = writer.write(bytes(1));
    expect(waiting).toBeInstanceOf(Promise);
    await waiting;
    expect(writer.write(bytes(MB - 1))).toBeUndefined();
    await writer.finish();
  });

  it('copies its input: the caller may reuse the bytes at once', async () => {
    const writer = await SpoolWriter.create(path, dir);
    const chunk = bytes(10);
    writer.write(chunk);
    chunk.fill(0);
    await writer.finish();
    expect(readFileSync(path).equals(bytes(10))).toBe(true);
  });

  it('never replaces another, and names its folder in an error', async () => {
    writeFileSync(path, 'theirs');
    await expect(SpoolWriter.create(path, dir)).rejects.toMatchObject({ kind: 'config', where: { file: dir } });
    expect(readFileSync(path, 'utf8')).toBe('theirs');
  });

  it('on a full disk fails at the next write or at its end, names the folder, and is removed', async () => {
    const full = async () => {
      throw systemError('ENOSPC');
    };
    const failure = { kind: 'transient', where: { file: dir }, message: expect.stringContaining('ENOSPC') };
    await withCall(await handle(), 'write', full, async () => {
      const writer = await SpoolWriter.create(path, dir);
      await writer.write(bytes(MB + 1));
      const later = (async () => {
        await writer.write(bytes(MB));
        await writer.write(bytes(MB));
      })();
      await expect(later).rejects.toMatchObject(failure);
      await writer.drop();
      expect([readdirSync(dir), openBelow(dir)]).toEqual([[], []]);
      const small = await SpoolWriter.create(path, dir);
      small.write(bytes(1));
      await expect(small.finish()).rejects.toMatchObject(failure);
      await small.drop();
      await small.drop();
      expect([readdirSync(dir), openBelow(dir)]).toEqual([[], []]);
    });
  });

  it('stays if it was renamed before it is dropped', async () => {
    const writer = await SpoolWriter.create(path, dir);
    await writer.finish();
    fs.renameSync(path, join(dir, 'rows.csv'));
    await writer.drop();
    expect(existsSync(join(dir, 'rows.csv'))).toBe(true);
  });
});

describe('a disk that fails', () => {
  it.each([
    ['ENOSPC', 3],
    ['EDQUOT', 3],
    ['EACCES', 2],
    ['EROFS', 2],
    ['EIO', 3],
  ])('with %s: exit %i, the folder named', (code, exit) => {
    const failure = spoolError(Object.assign(new Error(code), { code }), '/spool');
    expect(failure).toMatchObject({ exitCode: exit });
    expect(String(failure)).toContain('/spool');
  });
});
