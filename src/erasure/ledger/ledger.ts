// This folder: the ledger of erasures. It is an append-only chain of lines in one file, where ids are keyed hashes.
// `ledger.ts` writes the lines that `lines.ts` describes. `chain.ts` chains them, and verifies that chain.
// `ledger-file.ts` finds their file, and derives its keys. `ledger-history.ts` follows all lines, and `id-history.ts`
// those of one id. `proof.ts` makes the proof of an erasure from them, and `proof-text.ts` says it in words.

import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { configError, EXIT } from '../../base/errors.ts';
import { formatDuration } from '../../base/quantities.ts';
import type { Runtime } from '../../base/runtime.ts';
import type { Secret } from '../../base/secrets.ts';
import { diskError, withDiskErrors } from '../../fs/disk-failure.ts';
import { makeFolders, syncFolder } from '../../fs/folders.ts';
import { acquireLock, LOCK_WAIT_MS, type Lock, readOwner, withLockFile } from '../../fs/lock.ts';
import { checkWritable, giveToFolderOwner, isProtected, PRIVATE_FILE_MODE } from '../../fs/permissions.ts';
import { ensureKey, keyForReading, randomKey } from '../key-file.ts';
import { EMPTY_CHAIN, readChain, signLines } from './chain.ts';
import { type LedgerKeys, ledgerKeySource, ledgerKeysOf, ledgerPathIn } from './ledger-file.ts';
import { LedgerHistory } from './ledger-history.ts';
import type { LedgerLine, LineContent, LineOf, ServiceAddress } from './lines.ts';

export interface LedgerSettings extends ServiceAddress {
  readonly ledgerDir: string | undefined;
  readonly ledgerKey: Secret | undefined;
  readonly requestedBy?: string | undefined;
  readonly reason?: string | undefined;
}

/**
 * The ledger of one run. Its file is locked for each write alone: `person` writes beside an erasure. After a write has
 * failed every call fails. Without a folder nothing is kept.
 */
export class Ledger {
  readonly runId: string = randomBytes(8).toString('hex');
  readonly keys: LedgerKeys;
  /** What the lines say that this run has read or written. */
  readonly history: LedgerHistory;
  readonly #settings: LedgerSettings;
  readonly #clock: Clock;
  /** Behind the last line that this run has read or written. */
  #end = EMPTY_CHAIN;
  /** Ends with the last write that was asked for. Once a write has failed, it and every later one reject. */
  #writes = Promise.resolve();

  private constructor(settings: LedgerSettings, clock: Clock, keys: LedgerKeys, ids: readonly string[]) {
    this.#settings = settings;
    this.#clock = clock;
    this.keys = keys;
    this.history = new LedgerHistory(settings, keys, ids);
  }

  /**
   * Verifies the whole ledger, and reads what it says of the ids. A plan changes nothing: it makes no folder and no
   * key. Throws UserError for a ledger that is broken or cannot be written.
   */
  static async open(
    settings: LedgerSettings,
    { clock, isPlan, ids = [] }: { readonly clock: Clock; readonly isPlan: boolean; readonly ids?: readonly string[] },
  ): Promise<Ledger> {
    const { ledgerDir: folder, ledgerKey } = settings;
    if (folder === undefined) return new Ledger(settings, clock, ledgerKeysOf(randomKey()), ids);
    try {
      const path = ledgerPathIn(folder);
      if (isPlan) await checkWritable(path);
      else await makeFolders(folder);
      refuseForeignFolder(folder);
      const keySource = ledgerKeySource(path, ledgerKey);
      const key = isPlan ? keyForReading(keySource) : await whileLocked(folder, clock, () => ensureKey(keySource));
      const ledger = new Ledger(settings, clock, ledgerKeysOf(key), ids);
      await ledger.#readOn(folder);
      return ledger;
    } catch (error) {
      throw diskError(error, diskContextOf(folder));
    }
  }

  /** False for a container that keeps nothing. */
  get isKept(): boolean {
    return this.#settings.ledgerDir !== undefined;
  }

  /** Code of the last line that this run has read or written, to be printed and stored elsewhere. */
  get head(): string {
    return this.#end.head;
  }

  /** Writes the first line of the run. */
  begin(run: Pick<LineOf<'begin'>, 'ids' | 'places' | 'requests' | 'suppressed'>): Promise<void> {
    const { baseUrl: base_url, serviceId: service_id, requestedBy: requested_by, reason } = this.#settings;
    return this.write({ kind: 'begin', base_url, service_id, requested_by, reason, ...run });
  }

  /**
   * Writes a line, or several that follow each other. Resolves when they are on disk: only then may a request go out, or
   * a place be changed.
   */
  write(content: LineContent | readonly LineContent[]): Promise<void> {
    const { ledgerDir: folder } = this.#settings;
    const contents = [content].flat();
    this.#writes = this.#writes.then(async () => {
      const lines =
        folder === undefined
          ? this.#linesOf(contents)
          : await whileLocked(folder, this.#clock, (checkHeld) => this.#append(folder, contents, checkHeld));
      for (const line of lines) this.history.add(line);
    });
    return this.#writes;
  }

  /** The lines, as written now. */
  #linesOf(contents: readonly LineContent[]): LedgerLine[] {
    const at = new Date(this.#clock.now()).toISOString();
    const { keyCheck: key_check } = this.keys.lineKey;
    return contents.map((content) => ({ v: 1, run: this.runId, at, key_check, ...content }));
  }

  /** Appends lines behind those of other runs, so that their times rise. Returns them when they are on disk. */
  async #append(folder: string, contents: readonly LineContent[], checkHeld: () => void): Promise<LedgerLine[]> {
    const file = await open(ledgerPathIn(folder), 'a', PRIVATE_FILE_MODE);
    try {
      giveToFolderOwner(ledgerPathIn(folder));
      const tornBytes = await this.#readOn(folder);
      const lines = this.#linesOf(contents);
      const { text, end } = signLines(lines, this.#end, this.keys.lineKey);
      if (this.#end.size === 0) await syncFolder(folder);
      checkHeld();
      if (tornBytes > 0) await file.truncate(this.#end.size);
      await file.writeFile(text);
      await file.datasync();
      this.#end = end;
      return lines;
    } finally {
      await file.close();
    }
  }

  /** Reads what other runs have written. Returns the number of bytes of a last line that a crash has cut. */
  async #readOn(folder: string): Promise<number> {
    const noteLine = (line: LedgerLine) => this.history.add(line);
    const { end, tornBytes, problem } = await readChain(ledgerPathIn(folder), this.keys.lineKey, this.#end, noteLine);
    if (problem !== undefined) {
      const message = `The ledger is broken: ${problem} Put it back as it was, or begin a new ledger_dir.`;
      throw configError(message, { exitCode: EXIT.failed });
    }
    this.#end = end;
    return tornBytes;
  }
}

/**
 * Keeps other erasures off the ledger, from before the plan to the last answer: none requests an id that another one is
 * about to request. Undefined without a folder. Throws a transient failure if another erasure does not end in time, and
 * the signal's reason.
 */
export async function lockErasures(
  { ledgerDir: folder }: LedgerSettings,
  { clock, signal, logger }: Pick<Runtime, 'clock' | 'signal' | 'logger'>,
): Promise<Lock | undefined> {
  if (folder === undefined) return undefined;
  const subject = `the ledger in ${folder}`;
  const waitText = `Another erasure uses ${subject}: waiting ${formatDuration(LOCK_WAIT_MS)} at most for its end.`;
  const takeLock = async () => {
    const path = join(folder, 'erasure.lock');
    await makeFolders(folder);
    if (readOwner(path)?.isDead === false) logger.info('erase.wait', waitText);
    return await acquireLock(path, { subject, clock, signal, waitMs: LOCK_WAIT_MS });
  };
  return await withDiskErrors(diskContextOf(folder), takeLock());
}

/** Runs work while no other run writes to the ledger. */
function whileLocked<T>(folder: string, clock: Clock, work: (checkHeld: () => void) => Promise<T>): Promise<T> {
  const lock = { subject: `the ledger in ${folder}`, clock, waitMs: LOCK_WAIT_MS };
  return withDiskErrors(diskContextOf(folder), withLockFile(join(folder, 'ledger.lock'), lock, work));
}

/** How a failure of the disk names the ledger. */
const diskContextOf = (folder: string) =>
  ({ subject: `the ledger in ${folder}`, path: folder, consequence: 'nothing more was sent' }) as const;

const OTHERS_MAY_WRITE = 0o022;

/** Refuses a folder whose files others could take away or replace. */
function refuseForeignFolder(folder: string): void {
  const stat = statSync(folder, { throwIfNoEntry: false });
  if (stat === undefined || isProtected(stat, OTHERS_MAY_WRITE, folder)) return;
  throw configError(
    `Other users could exchange the files in the ledger's folder ${folder}: it must belong to this user, with mode 0700.`,
  );
}
