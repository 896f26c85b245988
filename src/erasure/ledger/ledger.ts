// This folder: the ledger of deletions: an append-only chain of lines, in which ids stand as keyed hashes, and its
// verification.

import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { configError, internalError, transientError, UserError } from '../../base/errors.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { LockFile } from '../../fs/lock.ts';
import { isTrustedOwner, makeFolders } from '../../fs/private-folder.ts';
import { createLedgerFile, isOpenToOthers, ledgerFiles, readSoundFile } from './file.ts';
import { LedgerKey, makeKey, storedKey, temporaryKey } from './key.ts';
import { GENESIS, type LedgerContent, type LedgerOutput, type Line, signLine } from './line.ts';
import { findUnfinishedRuns, NO_UNFINISHED_RUNS, type RestQuery, type UnfinishedRuns } from './unfinished.ts';

interface LedgerOptions {
  readonly run: string;
  /** Code of the line that its first one follows. */
  readonly prev: string;
  readonly key: LedgerKey;
  readonly output: LedgerOutput;
  readonly clock: Clock;
}

/**
 * The ledger of one run. Lines are signed in the order of the calls; those that wait for the disk at the same time
 * share one `fsync`. After a write has failed nothing more is written and every call fails.
 */
export class Ledger {
  readonly run: string;
  readonly key: LedgerKey;
  readonly #output: LedgerOutput;
  readonly #clock: Clock;
  #pending: string[] = [];
  /** Codes of the last line signed, and of the last one written. */
  #signed: string;
  #head: string;
  #added = 0;
  #written = 0;
  #writing: Promise<void> | undefined;
  #failure: UserError | undefined;

  constructor({ run, prev, key, output, clock }: LedgerOptions) {
    this.run = run;
    this.key = key;
    this.#output = output;
    this.#clock = clock;
    this.#signed = prev;
    this.#head = prev;
  }

  /** Code of the last line written, to be printed and stored elsewhere. */
  get head(): string {
    return this.#head;
  }

  /** Does not wait for the disk: call `sync` before relying on the line. */
  add(content: LedgerContent): void {
    if (this.#failure) throw this.#failure;
    const at = new Date(this.#clock.now()).toISOString();
    const { text, mac } = signLine({ v: 1, run: this.run, at, ...content }, this.#signed, this.key);
    this.#pending.push(text);
    this.#signed = mac;
    this.#added++;
  }

  /** Resolves when the line is on disk: only then may a request go out, or a place be changed. */
  async write(content: LedgerContent): Promise<void> {
    this.add(content);
    await this.sync();
  }

  /** Resolves when every line so far is on disk. */
  async sync(): Promise<void> {
    const wanted = this.#added;
    while (this.#written < wanted && this.#failure === undefined) {
      this.#writing ??= this.#writePending();
      await this.#writing;
    }
    if (this.#failure) throw this.#failure;
  }

  /** Closes the file; without a closing line the run can be resumed. */
  async close(): Promise<void> {
    try {
      await this.sync();
    } finally {
      await this.#output.close();
    }
  }

  async #writePending(): Promise<void> {
    const [lines, head] = [this.#pending, this.#signed];
    this.#pending = [];
    try {
      await this.#output.write(lines);
      this.#written += lines.length;
      this.#head = head;
    } catch (error) {
      const message =
        'The ledger could not be written, so nothing more was done: see that its disk has room, then run again.';
      this.#failure = error instanceof UserError ? error : transientError(message, { cause: error });
    } finally {
      this.#writing = undefined;
    }
  }
}

/** Refuses a configuration without a ledger, before anything is read. */
export function requireLedger(config: DestinationConfig): void {
  if (config.ledgerDir !== undefined || config.ledgerKey !== undefined) return;
  throw configError(
    'A run that deletes needs a ledger: set ledger_dir, or set ledger_key (or DFINERY_LEDGER_KEY) to have its lines in the log.',
  );
}

interface Folder {
  readonly path: string;
  readonly key: LedgerKey;
  /** Code of its last line. */
  readonly head: string;
  /** The lock of the folder, held by a real run alone. */
  readonly lock: LockFile | undefined;
}

interface StoreOptions {
  readonly config: DestinationConfig;
  /** False if nothing is written or locked. */
  readonly isReal: boolean;
  readonly clock: Clock;
  /** Receives the lines of a run without a folder. */
  readonly lines: LedgerOutput | undefined;
}

/** Where the ledger of a run is kept until `close`: in a folder, which a real run locks, or in the log. */
export class LedgerStore {
  readonly key: LedgerKey;
  readonly #options: StoreOptions;
  /** Undefined if the ledger has no folder, or none yet. */
  readonly #folder: Folder | undefined;
  /** The ledger of the run, once it has begun. */
  #ledger: Ledger | undefined;

  private constructor(options: StoreOptions, key: LedgerKey, folder?: Folder) {
    this.#options = options;
    this.key = key;
    this.#folder = folder;
  }

  /** A real run makes the folder (0700) and its key if they are missing. The last file that has a line is verified. */
  static async open(options: StoreOptions): Promise<LedgerStore> {
    const { isReal, config } = options;
    const { ledgerDir, ledgerKey } = config;
    if (isReal) requireLedger(config);
    if (ledgerDir === undefined || !(isReal || existsSync(ledgerDir))) {
      return new LedgerStore(options, ledgerKey === undefined ? temporaryKey() : new LedgerKey(ledgerKey));
    }
    const folder = await openFolder(ledgerDir, options);
    return new LedgerStore(options, folder.key, folder);
  }

  /** Finds the unfinished runs; `list` is the keyed hash of the list, as it stands in the first line of a ledger. */
  async findUnfinished(list: string, rest?: RestQuery): Promise<UnfinishedRuns> {
    const { config, clock } = this.#options;
    if (this.#folder === undefined) return NO_UNFINISHED_RUNS;
    const [folder, now] = [this.#folder.path, clock.now()];
    return findUnfinishedRuns({ folder, service: config, key: this.key, list, rest, now });
  }

  /** Begins the ledger of a run: in a file of its own, which follows the one before it in the chain, or in the log. */
  async start(content: Pick<Line<'open'>, 'list' | 'consent' | 'resumes' | 'ids' | 'places'>): Promise<Ledger> {
    const { config, clock } = this.#options;
    const run = randomBytes(8).toString('hex');
    const output = await this.#outputOf(run);
    const ledger = new Ledger({ run, prev: this.#folder?.head ?? GENESIS, key: this.key, output, clock });
    this.#ledger = ledger;
    await ledger.write({
      kind: 'open',
      base_url: config.baseUrl,
      service_id: config.serviceId,
      key_check: this.key.check,
      requested_by: config.requestedBy,
      reason: config.reason,
      ...content,
    });
    return ledger;
  }

  /** Resolves when every line of the run so far is on disk; at once if no run has begun. */
  async sync(): Promise<void> {
    await this.#ledger?.sync();
  }

  /** Closes the ledger. A line that could not be written has failed already where it was added. */
  async close(): Promise<void> {
    await this.#ledger?.close().catch(() => {});
    this.#folder?.lock?.release();
  }

  async #outputOf(run: string): Promise<LedgerOutput> {
    const { path, lock } = this.#folder ?? {};
    if (path !== undefined && lock !== undefined) {
      return createLedgerFile(path, run, lock).catch((error: unknown) => {
        throw ledgerError(error, path);
      });
    }
    const { isReal, lines } = this.#options;
    if (!isReal || lines === undefined) throw internalError('This run has no ledger.');
    return lines;
  }
}

async function openFolder(path: string, { isReal, clock, config }: StoreOptions): Promise<Folder> {
  let lock: LockFile | undefined;
  try {
    if (isReal) makeFolders(path);
    refuseForeignFolder(path);
    const what = `the ledger in ${path}`;
    if (isReal) lock = await LockFile.acquire(join(path, 'ledger.lock'), { what, clock, waitMs: 0 });
    let secret = config.ledgerKey ?? storedKey(path);
    // A key is made only for a new ledger: in an existing one it would hide that the old one is missing.
    if (secret === undefined && ledgerFiles(path).length > 0) {
      throw configError(`The ledger in ${path} has lost its key: put ledger.key back, or give it as ledger_key.`);
    }
    if (lock !== undefined) secret ??= await makeKey(path);
    const key = secret === undefined ? temporaryKey() : new LedgerKey(secret);
    return { path, key, lock, head: await headOf(path, key) };
  } catch (error) {
    lock?.release();
    throw ledgerError(error, path);
  }
}

/** A system error of a ledger's folder as a UserError that names it; any other error unchanged. */
const ledgerError = (error: unknown, folder: string): unknown =>
  diskError(error, { what: `the ledger in ${folder}`, path: folder, consequence: 'nothing was sent' });

/** Refuses a folder of another owner, who could remove files of the ledger or replace them. */
function refuseForeignFolder(folder: string): void {
  const { uid, mode } = statSync(folder);
  const where = { file: folder };
  if (!isTrustedOwner(uid)) {
    throw configError(
      `The ledger's folder ${folder} belongs to another user, who could exchange its files: ` +
        'set ledger_dir to a folder of this user, or run as its owner.',
      { where },
    );
  }
  if (!isOpenToOthers(mode)) return;
  throw configError(
    `Other users may write to the ledger's folder ${folder}, and so take away its files: set its mode to 0700.`,
    { where },
  );
}

/** Code of the ledger's last line; a file without any line, left by a crash, is skipped. */
async function headOf(folder: string, key: LedgerKey): Promise<string> {
  for (const file of ledgerFiles(folder).reverse()) {
    const { head } = await readSoundFile(file, key);
    if (head !== undefined) return head;
  }
  return GENESIS;
}
