import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { configFailure, messageOf } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { isTrustedOwner, makeFolders } from '../../fs/private-folder.ts';
import { Chain } from './chain.ts';
import { fileName, ledgerFiles } from './files.ts';
import { KEY_VERSION, keyInFolder, LedgerKey, storedKey } from './key.ts';
import { Ledger } from './ledger.ts';
import { GENESIS } from './line.ts';
import { LedgerLock } from './lock.ts';
import { FileOutput } from './output.ts';
import { readSoundFile } from './read.ts';
import type { LedgerStore, OpenContent, ServiceName, UnfinishedRuns } from './store.ts';
import { findUnfinishedRuns } from './unfinished.ts';

const OTHERS_MAY_WRITE = 0o022;

/** A ledger's folder, locked for one run. `close` unlocks it. */
export class LedgerFolder implements LedgerStore {
  readonly key: LedgerKey;
  readonly #options: FolderOptions;
  readonly #lock: LedgerLock;
  readonly #head: string;

  private constructor(options: FolderOptions, lock: LedgerLock, key: LedgerKey, head: string) {
    this.#options = options;
    this.#lock = lock;
    this.key = key;
    this.#head = head;
  }

  /** Locks the folder (made, 0700, if it is not there), finds or makes its key, and verifies its last file. */
  static async open(options: FolderOptions): Promise<LedgerFolder> {
    const { folder, clock } = options;
    makeFolder(folder);
    refuseForeignFolder(folder);
    let lock: LedgerLock | undefined;
    try {
      lock = await LedgerLock.take(folder, clock);
      const key = new LedgerKey(options.key ?? storedKey(folder) ?? firstKey(folder));
      return new LedgerFolder(options, lock, key, await headOf(folder, key));
    } catch (error) {
      lock?.release();
      throw ledgerFailure(error, folder);
    }
  }

  findUnfinished(list: string): Promise<UnfinishedRuns> {
    const { folder, service, clock } = this.#options;
    return findUnfinishedRuns({ folder, service, key: this.key, list, now: clock.now() });
  }

  /** Begins the run's own file, which follows the file before it in the chain. */
  async start(content: OpenContent): Promise<Ledger> {
    const { folder, service, clock } = this.#options;
    const run = randomBytes(8).toString('hex');
    const path = join(folder, fileName((ledgerFiles(folder).at(-1)?.number ?? 0) + 1, run));
    const file = await FileOutput.create(path, folder).catch((error: unknown) => {
      throw ledgerFailure(error, folder);
    });
    const output = this.#lock.guarded(file);
    const ledger = new Ledger(run, new Chain(this.key, this.#head), output, clock);
    await ledger.open({
      base_url: service.baseUrl,
      service_id: service.serviceId,
      key_version: KEY_VERSION,
      key_check: this.key.check,
      ...content,
    });
    return ledger;
  }

  close(): void {
    this.#lock.release();
  }
}

/** A system error of a ledger's folder as a Failure that names it; any other error unchanged. */
const ledgerFailure = (error: unknown, folder: string): unknown =>
  diskFailure(error, { what: `the ledger in ${folder}`, path: folder, consequence: 'nothing was sent' });

export interface FolderOptions {
  readonly folder: string;
  /** Absent: the folder's own, made if it has none. */
  readonly key: Secret | undefined;
  readonly service: ServiceName;
  readonly clock: Clock;
}

function makeFolder(folder: string): void {
  try {
    makeFolders(folder, 0o700);
  } catch (error) {
    throw configFailure(`The ledger's folder ${folder} cannot be made: ${messageOf(error)}.`, { cause: error });
  }
}

/** Whoever owns the folder can take files of the ledger away or put others in their place (S40). */
export function refuseForeignFolder(folder: string): void {
  const { uid, mode } = statSync(folder);
  if (!isTrustedOwner(uid)) {
    throw configFailure(
      `The ledger's folder ${folder} belongs to another user, who could exchange its files: set ledger_dir to a folder of this user, or run as its owner.`,
      { where: { file: folder } },
    );
  }
  if (process.getuid === undefined || (mode & OTHERS_MAY_WRITE) === 0) return;
  throw configFailure(
    `Other users may write to the ledger's folder ${folder}, and so take away its files: set its mode to 0700.`,
    { where: { file: folder } },
  );
}

function firstKey(folder: string): Secret {
  refuseLostKey(folder);
  return keyInFolder(folder);
}

/** For a folder without a key: one is made only for a new ledger, since in an existing one it would hide that the old one is missing. */
export function refuseLostKey(folder: string): void {
  if (ledgerFiles(folder).length === 0) return;
  throw configFailure(`The ledger in ${folder} has lost its key: put ledger.key back, or give it as ledger_key.`);
}

/** Code of the ledger's last line; a file without any line, left by a crash, is skipped. */
export async function headOf(folder: string, key: LedgerKey): Promise<string> {
  for (const file of ledgerFiles(folder).reverse()) {
    const { head } = await readSoundFile(file, key);
    if (head !== undefined) return head;
  }
  return GENESIS;
}
