import { createReadStream } from 'node:fs';
import { readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { replaceFile } from '../../fs/atomic-file.ts';
import { isLeased } from '../../fs/lock.ts';
import type { ExportFile } from '../download/download.ts';

// A verified spool file, `<stem>.csv`, that a later run can use has a sidecar, `<stem>.json`. The run that moves or removes the
// sidecar owns both.

interface Sidecar {
  readonly v: 1;
  /** Of everything that makes two spool files of the same days differ. */
  readonly fingerprint: string;
  /**
   * CRC-32 of the spool file, which is not synced to disk: a power cut may lose some of its pages. No protection against
   * tampering is needed, the folder is private.
   */
  readonly spool_crc32: number;
  readonly part: Omit<ExportFile, 'path' | 'exports' | 'spoolCrc'>;
}

const NAME = /^((r[0-9a-f]{16})-\d{6})\.json$/;

/** Writes the sidecar of a verified file atomically. */
export async function writeSidecar(file: ExportFile, stem: string, fingerprint: string): Promise<void> {
  const { path: _path, exports: _exports, spoolCrc, scan, ...rest } = file;
  const { idSample: _idSample, ...stored } = scan;
  const sidecar: Sidecar = { v: 1, fingerprint, spool_crc32: spoolCrc, part: { ...rest, scan: stored } };
  await replaceFile(`${stem}.json`, JSON.stringify(sidecar));
}

/**
 * Stems of the verified files that dead runs left, by the key of their export, oldest first. Files made under another
 * fingerprint (another suppression list, for example) are removed.
 */
export async function findReusable(folder: string, fingerprint: string): Promise<Map<string, string[]>> {
  const byKey = new Map<string, string[]>();
  for (const name of (await readdir(folder)).sort()) {
    const [, id, run] = NAME.exec(name) ?? [];
    if (id === undefined || isLeased(folder, run)) continue;
    const stem = join(folder, id);
    const found = await sidecarOf(stem);
    if (found?.fingerprint === fingerprint) byKey.set(found.part.key, [...(byKey.get(found.part.key) ?? []), stem]);
    else await discardReusable(stem);
  }
  return byKey;
}

/** Removes a reusable file and its sidecar, unless another run adopts it first. `command`: only if that one made it. */
export async function discardReusable(stem: string, command?: string): Promise<void> {
  if (command !== undefined && (await sidecarOf(stem))?.part.command !== command) return;
  try {
    await unlink(`${stem}.json`);
    await unlink(`${stem}.csv`);
  } catch {
    // Another run's, or not there.
  }
}

/** Renames a reusable file and its sidecar. Undefined when another run was first, or when the file does not match its sidecar. */
export async function adoptFile(
  stem: string,
  target: string,
  key: string,
  fingerprint: string,
): Promise<ExportFile | undefined> {
  try {
    await rename(`${stem}.json`, `${target}.json`);
    await rename(`${stem}.csv`, `${target}.csv`);
    const sidecar = await sidecarOf(target);
    const isWanted = sidecar?.fingerprint === fingerprint && sidecar.part.key === key;
    if (isWanted && (await crcOf(`${target}.csv`)) === sidecar.spool_crc32) {
      return { ...sidecar.part, spoolCrc: sidecar.spool_crc32, path: `${target}.csv`, exports: 0 };
    }
  } catch {
    // Another run was first, or a file is missing.
  }
  await discardReusable(target);
  return undefined;
}

async function sidecarOf(stem: string): Promise<Sidecar | undefined> {
  try {
    const found = JSON.parse(await readFile(`${stem}.json`, 'utf8')) as Partial<Sidecar>;
    return found.v === 1 && found.part !== undefined && found.spool_crc32 !== undefined
      ? (found as Sidecar)
      : undefined;
  } catch {
    return undefined;
  }
}

async function crcOf(path: string): Promise<number> {
  let crc = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) crc = crc32(chunk as Uint8Array, crc);
  return crc;
}
