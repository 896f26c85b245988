import { createReadStream } from 'node:fs';
import { readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { replaceFile } from '../../fs/atomic-file.ts';
import { isLeased } from '../../fs/lock.ts';
import type { ExportFile } from '../download/download.ts';

/** The file beside a verified spool file by which a later run can reuse it. */
interface Sidecar {
  readonly v: 1;
  readonly fingerprint: string;
  /**
   * CRC-32 of the spool file, which is not synced to disk: a power cut may lose some of its pages. No protection against
   * tampering is needed, the folder is private.
   */
  readonly spool_crc32: number;
  readonly part: Omit<ExportFile, 'path' | 'exports' | 'spoolCrc'>;
}

const RUN = /^(r[0-9a-f]{16})-\d{6}\.json$/;

export const sidecarPathOf = (path: string): string => path.replace(/\.csv$/, '.json');

/** Writes the sidecar of a verified file atomically. */
export async function writeSidecar(part: ExportFile, path: string, fingerprint: string): Promise<void> {
  const { path: _path, exports: _exports, spoolCrc, scan, ...rest } = part;
  const { idSample: _idSample, ...stored } = scan;
  const sidecar: Sidecar = {
    v: 1,
    fingerprint,
    spool_crc32: spoolCrc,
    part: { ...rest, scan: stored },
  };
  await replaceFile(sidecarPathOf(path), JSON.stringify(sidecar));
}

/**
 * Paths of the sidecars that dead runs left, by the key of their export, oldest first. Files made under another
 * fingerprint (another suppression list, for example) are removed.
 */
export async function findSidecars(folder: string, fingerprint: string): Promise<Map<string, string[]>> {
  const byKey = new Map<string, string[]>();
  for (const name of (await readdir(folder)).sort()) {
    const run = RUN.exec(name)?.[1];
    if (run === undefined || isLeased(folder, run)) continue;
    const path = join(folder, name);
    const found = await sidecarAt(path);
    if (found?.fingerprint === fingerprint) byKey.set(found.part.key, [...(byKey.get(found.part.key) ?? []), path]);
    else await removePair(path);
  }
  return byKey;
}

async function removePair(sidecarPath: string): Promise<void> {
  await unlink(sidecarPath).catch(() => {});
  await unlink(sidecarPath.replace(/\.json$/, '.csv')).catch(() => {});
}

/**
 * Removes a reusable file and its sidecar, unless another run adopts it first: the run that moves the sidecar owns the file.
 * `command`: only if that one made it.
 */
export async function discardReusable(sidecarPath: string, command?: string): Promise<void> {
  const found = await sidecarAt(sidecarPath);
  if (command !== undefined && found?.part.command !== command) return;
  try {
    await unlink(sidecarPath);
  } catch {
    return;
  }
  await unlink(sidecarPath.replace(/\.json$/, '.csv')).catch(() => {});
}

/**
 * Renames a reusable file and its sidecar to `target` (without extension). The rename of the sidecar decides between two
 * runs. Undefined when another run was first, or when the file does not match its sidecar.
 */
export async function adoptFile(
  sidecarPath: string,
  target: string,
  key: string,
  fingerprint: string,
): Promise<ExportFile | undefined> {
  try {
    await rename(sidecarPath, `${target}.json`);
    await rename(sidecarPath.replace(/\.json$/, '.csv'), `${target}.csv`);
    const sidecar = await sidecarAt(`${target}.json`);
    if (sidecar?.fingerprint !== fingerprint || sidecar.part.key !== key)
      throw new Error('the sidecar belongs to another export');
    if ((await crcOf(`${target}.csv`)) !== sidecar.spool_crc32) throw new Error('the file does not match its CRC');
    return { ...sidecar.part, spoolCrc: sidecar.spool_crc32, path: `${target}.csv`, exports: 0 };
  } catch {
    await removePair(`${target}.json`);
    return undefined;
  }
}

async function sidecarAt(path: string): Promise<Sidecar | undefined> {
  try {
    const found = JSON.parse(await readFile(path, 'utf8')) as Partial<Sidecar>;
    if (found.v !== 1 || found.part === undefined || found.spool_crc32 === undefined) return undefined;
    return { v: 1, fingerprint: String(found.fingerprint), spool_crc32: found.spool_crc32, part: found.part };
  } catch {
    return undefined;
  }
}

async function crcOf(path: string): Promise<number> {
  let crc = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) crc = crc32(chunk as Uint8Array, crc);
  return crc;
}
