import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { configError, internalError, messageOf, transientError } from '../../base/errors.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { LockFile } from '../../fs/lock.ts';
import { isTrustedOwner, makeFolders } from '../../fs/private-folder.ts';
import { createLedgerFile, fileName, isOpenToOthers, ledgerFiles, readSoundFile } from './file.ts';
import { keyInFolder, LedgerKey, storedKey, temporaryKey } from './key.ts';
import { Ledger, type LedgerOutput } from './ledger.ts';
import { Chain, GENESIS, type OpenLine } from './line.ts';
import { findUnfinishedRuns, NO_UNFINISHED_RUNS, type UnfinishedRuns } from './unfinished.ts';

export interface StoreOptions {
  readonly config: DestinationConfig;
  /** False: nothing is written or locked. */
  readonly isReal: boolean;
  readonly clock: Clock;
  /** Takes the lines of a run without a folder. */
  readonly lines: LedgerOutput | undefined;
}

/** What a run adds to the first line of its ledger; the store adds the rest. */
export type OpenContent = Pick<OpenLine, 'list' | 'resumes' | 'requested_by' | 'reason' | 'ids'>;

/** Where a run leaves its proof must be known before anything is read. */
export function requireLedger(config: DestinationConfig): void {
  if (config.ledgerDir !== undefined || config.ledgerKey !== undefined) return;
  throw configError(
    'A run that deletes needs a ledger: set ledger_dir, or set ledger_key (or DFINERY_LEDGER_KEY) to have its lines in the log.',
  );
}

/** The storage of a run's ledger: a folder, which a real run locks until `close`, or the log. */
export class LedgerStore {
  readonly key: LedgerKey;
  readonly #options: StoreOptions;
  /** Undefined: there is none, or none yet. */
  readonly #folder: string | undefined;
  readonly #lock: LockFile | undefined;
  readonly #head: string;

  private constructor(
    options: StoreOptions,
    key: LedgerKey,
    opened?: { folder: string; lock?: LockFile; head: string },
  ) {
    this.#options = options;
    this.key = key;
    this.#folder = opened?.folder;
    this.#lock = opened?.lock;
    this.#head = opened?.head ?? GENESIS;
  }

  /** A real run makes the folder (0700) and its key where they are missing. The last file that has a line is verified. */
  static async open(options: StoreOptions): Promise<LedgerStore> {
    const { isReal, clock, config } = options;
    const { ledgerDir: folder, ledgerKey } = config;
    if (isReal) requireLedger(config);
    if (folder === undefined || !(isReal || existsSync(folder))) {
      return new LedgerStore(options, ledgerKey === undefined ? temporaryKey() : new LedgerKey(ledgerKey));
    }
    if (isReal) makeFolder(folder);
    refuseForeignFolder(folder);
    let lock: LockFile | undefined;
    try {
      const what = `the ledger in ${folder}`;
      if (isReal) lock = await LockFile.take(join(folder, 'ledger.lock'), { what, clock, waitMs: 0 });
      const secret = ledgerKey ?? storedKey(folder);
      if (secret === undefined) refuseLostKey(folder);
      const key = secret ? new LedgerKey(secret) : isReal ? new LedgerKey(keyInFolder(folder)) : temporaryKey();
      return new LedgerStore(options, key, { folder, ...(lock && { lock }), head: await headOf(folder, key) });
    } catch (error) {
      lock?.release();
      throw ledgerError(error, folder);
    }
  }

  /** `list`: the keyed hash of the list, as it stands in the first line of a ledger. */
  async findUnfinished(list: string): Promise<UnfinishedRuns> {
    const { config, clock } = this.#options;
    if (this.#folder === undefined) return NO_UNFINISHED_RUNS;
    return findUnfinishedRuns({ folder: this.#folder, service: config, key: this.key, list, now: clock.now() });
  }

  /** Begins the ledger of a run: in a file of its own, which follows the one before it in the chain, or in the log. */
  async start(content: OpenContent): Promise<Ledger> {
    const { config, clock } = this.#options;
    const run = randomBytes(8).toString('hex');
    const output = await this.#outputOf(run);
    const ledger = new Ledger(run, new Chain(this.key, this.#head), output, clock);
    try {
      await ledger.write({
        kind: 'open',
        base_url: config.baseUrl,
        service_id: config.serviceId,
        key_check: this.key.check,
        ...content,
      });
    } catch (error) {
      await output.close();
      throw error;
    }
    return ledger;
  }

  close(): void {
    this.#lock?.release();
  }

  async #outputOf(run: string): Promise<LedgerOutput> {
    const [folder, lock] = [this.#folder, this.#lock];
    if (folder !== undefined && lock !== undefined) return lockedFile(folder, run, lock);
    const { isReal, lines } = this.#options;
    if (!isReal || lines === undefined) throw internalError('This run has no ledger.');
    return lines;
  }
}

/** A new file of the folder; it refuses to write once another run has taken the lock (while this process was suspended). */
async function lockedFile(folder: string, run: string, lock: LockFile): Promise<LedgerOutput> {
  const path = join(folder, fileName((ledgerFiles(folder).at(-1)?.number ?? 0) + 1, run));
  const file = await createLedgerFile(path, folder).catch((error: unknown) => {
    throw ledgerError(error, folder);
  });
  return {
    async write(lines) {
      if (!lock.isHeld()) {
        throw transientError(`Another run has taken over the ledger in ${folder}: this one was silent for long.`);
      }
      await file.write(lines);
    },
    close: () => file.close(),
  };
}

/** A system error of a ledger's folder as a UserError that names it; any other error unchanged. */
const ledgerError = (error: unknown, folder: string): unknown =>
  diskError(error, { what: `the ledger in ${folder}`, path: folder, consequence: 'nothing was sent' });

function makeFolder(folder: string): void {
  try {
    makeFolders(folder, 0o700);
  } catch (error) {
    throw configError(`The ledger's folder ${folder} cannot be made: ${messageOf(error)}.`, { cause: error });
  }
}

/** Whoever owns the folder can take files of the ledger away or put others in their place (S40). */
function refuseForeignFolder(folder: string): void {
  const { uid, mode } = statSync(folder);
  if (!isTrustedOwner(uid)) {
    throw configError(
      `The ledger's folder ${folder} belongs to another user, who could exchange its files: set ledger_dir to a folder of this user, or run as its owner.`,
      { where: { file: folder } },
    );
  }
  if (!isOpenToOthers(mode)) return;
  throw configError(
    `Other users may write to the ledger's folder ${folder}, and so take away its files: set its mode to 0700.`,
    { where: { file: folder } },
  );
}

/** A key is made only for a new ledger: in an existing one it would hide that the old one is missing. */
function refuseLostKey(folder: string): void {
  if (ledgerFiles(folder).length === 0) return;
  throw configError(`The ledger in ${folder} has lost its key: put ledger.key back, or give it as ledger_key.`);
}

/** Code of the ledger's last line; a file without any line, left by a crash, is skipped. */
async function headOf(folder: string, key: LedgerKey): Promise<string> {
  for (const file of ledgerFiles(folder).reverse()) {
    const { head } = await readSoundFile(file, key);
    if (head !== undefined) return head;
  }
  return GENESIS;
}
