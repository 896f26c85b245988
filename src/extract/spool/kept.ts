import { createReadStream } from 'node:fs';
import { readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { replaceFile } from '../../fs/atomic-file.ts';
import { isLeased } from '../../fs/lease.ts';
import type { Verified } from '../download/verified.ts';

/** What lies beside a verified spool file so that another run can use it. */
interface Sidecar {
  readonly v: 1;
  readonly fingerprint: string;
  /** Of the file beside it: a power cut may take some of its pages. The folder is its owner's alone. */
  readonly spool_crc32: number;
  readonly part: Omit<Verified, 'path' | 'exports'>;
}

interface Marks {
  readonly fingerprint: string;
  readonly spoolCrc: number;
}

const RUN = /^(r[0-9a-f]{16})-\d{6}\.json$/;

export const sidecarOf = (path: string): string => path.replace(/\.csv$/, '.json');

/** Writes the sidecar whole or not at all. */
export async function writeKept(part: Verified, path: string, marks: Marks): Promise<void> {
  const { path: _path, exports: _exports, ...rest } = part;
  const sidecar: Sidecar = { v: 1, fingerprint: marks.fingerprint, spool_crc32: marks.spoolCrc, part: rest };
  await replaceFile(sidecarOf(path), JSON.stringify(sidecar));
}

/**
 * Sidecars of dead runs by the key that they answer, oldest first. What was made under another fingerprint (another
 * suppression list, say) is removed.
 */
export async function readKept(folder: string, fingerprint: string): Promise<Map<string, string[]>> {
  const out = new Map<string, string[]>();
  for (const name of (await readdir(folder)).sort()) {
    const run = RUN.exec(name)?.[1];
    if (run === undefined || isLeased(folder, run)) continue;
    const path = join(folder, name);
    const found = await sidecarAt(path);
    if (found?.fingerprint === fingerprint) out.set(found.part.key, [...(out.get(found.part.key) ?? []), path]);
    else await removePair(path);
  }
  return out;
}

async function removePair(sidecarPath: string): Promise<void> {
  await unlink(sidecarPath).catch(() => {});
  await unlink(sidecarPath.replace(/\.json$/, '.csv')).catch(() => {});
}

/** Removes a kept file that nobody wants; whoever takes its sidecar away first decides. */
export async function discardKept(sidecarPath: string): Promise<void> {
  try {
    await unlink(sidecarPath);
  } catch {
    return;
  }
  await unlink(sidecarPath.replace(/\.json$/, '.csv')).catch(() => {});
}

/** Makes a kept file ours: the rename of the sidecar decides between two runs. Undefined when it is gone or not whole. */
export async function adopt(
  sidecarPath: string,
  target: string,
  key: string,
  fingerprint: string,
): Promise<Verified | undefined> {
  try {
    await rename(sidecarPath, `${target}.json`);
    await rename(sidecarPath.replace(/\.json$/, '.csv'), `${target}.csv`);
    const sidecar = await sidecarAt(`${target}.json`);
    if (sidecar?.fingerprint !== fingerprint || sidecar.part.key !== key) throw new Error('another sidecar');
    if ((await crcOf(`${target}.csv`)) !== sidecar.spool_crc32) throw new Error('another text');
    return { ...sidecar.part, path: `${target}.csv`, exports: 0 };
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
