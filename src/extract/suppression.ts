import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { configFailure, messageOf } from '../base/errors.ts';
import type { Secret } from '../base/secrets.ts';
import type { Suppression } from './ports.ts';

/** First line of a suppression file; every other one is `{"hmac":"<64 hex>"}`. */
export const SUPPRESSION_HEADER = { v: 1, kind: 'suppression' } as const;

/** Ids whose answer is remembered, before the memory is emptied. */
const REMEMBERED = 100_000;
const HMAC = /^[0-9a-f]{64}$/;

/** HMAC-SHA256 (hex) of a `df_unified_id` under the suppression key. */
export const suppressionHmac = (key: Secret, unifiedId: Uint8Array): string =>
  createHmac('sha256', key.reveal()).update(unifiedId).digest('hex');

/**
 * The people who stay forgotten, from a file of JSON Lines. Throws a configuration failure when it cannot be read or a
 * line is not understood: a list that is not whole must not let anybody through.
 */
export function loadSuppression(path: string, key: Secret): Suppression {
  const listed = new Set<string>();
  const lines = textOf(path).split(/\r?\n/);
  for (let i = 0; i < lines.length; i++) if (lines[i].trim() !== '') take(lines[i], i + 1, path, listed);
  const digest = createHash('sha256').update(suppressionHmac(key, Buffer.from('digest')));
  for (const hmac of [...listed].sort()) digest.update(hmac);
  return { isSuppressed: lookup(listed, key), digest: digest.digest('hex') };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw configFailure(
      `The suppression file ${path} cannot be read (${messageOf(error)}): make an empty file where nobody is to be held out yet.`,
      { cause: error, where: { file: path } },
    );
  }
}

function take(line: string, number: number, path: string, listed: Set<string>): void {
  const found = parsed(line);
  if (found?.kind === SUPPRESSION_HEADER.kind && found.v === 1) return;
  if (typeof found?.hmac === 'string' && HMAC.test(found.hmac)) {
    listed.add(found.hmac);
    return;
  }
  throw configFailure(
    `Line ${number} of the suppression file ${path} is not {"hmac":"<64 hex digits>"}: restore the file, or use the version that wrote it.`,
    { where: { file: path, row: number } },
  );
}

interface Line {
  readonly v?: unknown;
  readonly kind?: unknown;
  readonly hmac?: unknown;
}

function parsed(line: string): Line | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function lookup(listed: ReadonlySet<string>, key: Secret): Suppression['isSuppressed'] {
  if (listed.size === 0) return () => false;
  const answers = new Map<string, boolean>();
  return (bytes, start, end) => {
    const id = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    const text = id.toString('latin1');
    const known = answers.get(text);
    if (known !== undefined) return known;
    if (answers.size >= REMEMBERED) answers.clear();
    const answer = listed.has(suppressionHmac(key, id));
    answers.set(text, answer);
    return answer;
  };
}
