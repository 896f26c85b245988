import { createHash } from 'node:crypto';
import { formatDuration } from '../../base/durations.ts';
import { type Backoff, pauseAfter } from '../../base/retry.ts';
import type { Runtime } from '../../base/runtime.ts';
import type { Secret } from '../../base/secrets.ts';
import { UNIFIED_ID } from '../../cells/columns/groups.ts';
import { Scanner, type ScannerOptions, type ScanResult } from '../../cells/columns/scanner.ts';
import { MalformedCsv, UnusableCsv } from '../../cells/csv/malformed.ts';
import type { NameCondition } from '../../config/source.ts';
import { type Post, scopedPath } from '../http/transport.ts';
import { type ExportAnswer, type ExportBody, exportHeaders, UnreadableBody } from './protocol.ts';

/** The id by which the company knows a profile. */
export const EXTERNAL_ID = 'df_external_id';

/** The attributes that are wanted; the ids come with every profile. */
export interface ProfileRequest {
  readonly properties: readonly string[];
  readonly propertiesCondition: NameCondition;
}

/** Asks for all attributes. */
export const ALL_PROPERTIES: ProfileRequest = { properties: [], propertiesCondition: 'all' };
/** Asks for the ids alone, as far as a request can. */
export const IDS_ALONE: ProfileRequest = { properties: [UNIFIED_ID], propertiesCondition: 'include' };

export interface ProfileService {
  /** Sends one export of profiles, without any retry, under a permit of the quota. */
  exportProfiles(request: ProfileRequest, signal: AbortSignal): Promise<ExportAnswer>;
}

/** The request as the provider's API guide has it. */
export function profilePost(
  { properties, propertiesCondition }: ProfileRequest,
  serviceId: string,
  token: Secret,
): Post {
  return {
    path: scopedPath('/api/v1/export/userprofile', serviceId),
    headers: exportHeaders(token),
    body: JSON.stringify({
      ...(properties.length > 0 && { properties }),
      properties_condition_type: propertiesCondition,
      identities_condition_type: 'all',
    }),
  };
}

/** A snapshot of all profiles that was received and checked to its last byte. */
export interface ProfileSnapshot {
  readonly kind: 'snapshot';
  readonly scan: Omit<ScanResult, 'tail'>;
  /** Number of bytes received, and their SHA-256 (hex). */
  readonly bytes: number;
  readonly sha256: string;
  /** Instant of the request (ms since 1970). */
  readonly sentAt: number;
}

/**
 * Why there is no snapshot. `busy`: the limit, a failure or a body that was cut, after all attempts. `refused`: the user
 * must act, on the token for instance. `unavailable`: the service does not have this export, or not in this form.
 * `message` is a sentence.
 */
export interface NoSnapshot {
  readonly kind: 'busy' | 'refused' | 'unavailable';
  readonly message: string;
}

/** Takes the checked bytes of one attempt: UTF-8, LF, without a BOM. They are valid until the promise settles. */
type ProfileOutput = (bytes: Uint8Array) => void | Promise<void>;

export interface ProfileDeps extends Omit<Runtime, 'env'> {
  readonly service: ProfileService;
  /** Begins an attempt, whose bytes count only if the snapshot is given. */
  readonly open: () => ProfileOutput | Promise<ProfileOutput>;
  readonly scan?: Omit<ScannerOptions, 'requireSystem'>;
}

const RETRY: Backoff = { attempts: 5, baseMs: 1_000, capMs: 30_000 };

/**
 * Downloads all profiles, and repeats a request that may succeed later. A snapshot whose last line may be cut is
 * downloaded once more, and then believed. Throws what `open` and its output throw, UserErrors of the quota, and the
 * signal's reason.
 */
export async function downloadProfiles(
  request: ProfileRequest,
  deps: ProfileDeps,
): Promise<ProfileSnapshot | NoSnapshot> {
  const { clock, random, logger, signal } = deps;
  const broken = new Set<string>();
  let hasBeenCut = false;
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted();
    const result = await attemptProfiles(request, deps);
    if (result.kind === 'snapshot') {
      if (result.scan.finalNewline || hasBeenCut) return result;
      hasBeenCut = true;
      logger.info('profiles.last_line', 'The last line of the profiles may be cut; they are downloaded once more.');
      continue;
    }
    if (result.kind !== 'retry') return result;
    const { why, fault, isFinal } = result;
    if (isFinal || (fault !== undefined && broken.has(fault))) {
      return { kind: 'refused', message: `The export of profiles is broken, and would be again: ${why}.` };
    }
    if (fault !== undefined) broken.add(fault);
    if (attempt >= RETRY.attempts || result.isHopeless) {
      return { kind: 'busy', message: `The export of profiles failed, at last because ${why}.` };
    }
    const pause = pauseAfter(attempt, RETRY, random);
    const text = `Profiles, attempt ${attempt} of ${RETRY.attempts}: ${why}; again in ${formatDuration(pause)}.`;
    logger.warn('profiles.retry', text, { attempt, pause_ms: pause });
    await clock.sleep(pause, signal);
  }
}

interface Retry {
  readonly kind: 'retry';
  /** A clause that can follow "because". */
  readonly why: string;
  /** How and where the body is broken: the same twice is final. */
  readonly fault?: string;
  /** True if another download would be broken in the same way. */
  readonly isFinal?: boolean;
  /** True if waiting longer would be of no use now. */
  readonly isHopeless?: boolean;
}

async function attemptProfiles(request: ProfileRequest, deps: ProfileDeps) {
  const sentAt = deps.clock.now();
  const answer = await deps.service.exportProfiles(request, deps.signal);
  if (answer.kind !== 'data') return refusalOf(answer);
  try {
    return await scanProfiles(answer, sentAt, deps);
  } catch (error) {
    deps.signal.throwIfAborted();
    if (error instanceof MalformedCsv) {
      const { reason, where, sentence } = error;
      const isFinal = reason === 'no_header' || reason === 'too_many_columns' || reason === 'not_csv';
      return { kind: 'retry', why: sentence, fault: `${reason} ${where.row}`, isFinal } satisfies Retry;
    }
    if (error instanceof UnusableCsv) return { kind: 'refused', message: error.message } satisfies NoSnapshot;
    if (!(error instanceof UnreadableBody)) throw error;
    return { kind: 'retry', why: error.message, isHopeless: error.fault === 'stall' } satisfies Retry;
  } finally {
    await answer.close();
  }
}

function refusalOf({ kind, code, message, status }: Exclude<ExportAnswer, ExportBody>): NoSnapshot | Retry {
  switch (kind) {
    case 'retry':
    case 'retry_or_split':
      return { kind: 'retry', why: message, isHopeless: code === 'stall' };
    case 'wait':
      return { kind: 'retry', why: message.replace(/\.$/, '') };
    case 'gone':
    case 'invalid':
      return { kind: 'unavailable', message };
    case 'config':
      return { kind: status === 404 ? 'unavailable' : 'refused', message };
  }
}

async function scanProfiles(
  answer: ExportBody,
  sentAt: number,
  { open, scan: options, signal }: ProfileDeps,
): Promise<ProfileSnapshot | NoSnapshot | Retry> {
  const scanner = new Scanner({ ...options, requireSystem: false });
  const output = await open();
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of answer.bytes) {
    signal.throwIfAborted();
    bytes += chunk.length;
    hash.update(chunk);
    for (const part of scanner.push(chunk)) await output(part);
    if (scanner.header?.includes(UNIFIED_ID) === false) return withoutIds();
  }
  if (bytes === 0) return { kind: 'retry', why: 'its body has no byte' };
  const { tail, ...scan } = scanner.finish();
  if (!scan.header.includes(UNIFIED_ID)) return withoutIds();
  for (const part of tail) await output(part);
  return { kind: 'snapshot', scan, bytes, sha256: hash.digest('hex'), sentAt };
}

const withoutIds = (): NoSnapshot => ({
  kind: 'refused',
  message: `The export of profiles has no column ${UNIFIED_ID}: is base_url right?`,
});
