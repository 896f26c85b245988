import type { Storage, Stored } from '../../storage/storage.ts';
import { isReceiptEntry } from './log-entries.ts';

/** How a log names its versions: files of one folder that are made once and never changed. */
export interface VersionNames {
  readonly folder: string;
  pathOf(version: number): string;
  /** The version that a file of the folder belongs to; undefined for any other file. */
  versionOf(path: string): number | undefined;
  /** A text that comes before the paths of this version and later ones, whose order is that of the versions. */
  before(version: number): string;
}

/** What a version adds, by which one that follows from it is known. */
export interface VersionContent {
  /** The entries of the state that it writes (`entryChanges`). */
  readonly entries: ReadonlyMap<string, string>;
  readonly paths: readonly string[];
}

/** What the latest version says of state and files. */
export interface LatestVersion {
  readonly entries: ReadonlyMap<string, string>;
  /** True for the path of a file that is live, or that left. */
  knows(path: string): boolean;
}

/**
 * The numbered versions of a log, from 0 on, for a log whose commit is that one of them is made. A purge removes those
 * before its own. All methods throw UserError.
 */
export class Versions {
  readonly #storage: Storage;
  readonly #names: VersionNames;

  constructor(storage: Storage, names: VersionNames) {
    this.#storage = storage;
    this.#names = names;
  }

  /**
   * Makes a version, once all that it names is stored. Returns false if somebody else made it first, or if a purge has
   * removed the versions before it, so that no reader would ever see this one. Then the log erases what it stored, and
   * throws LostRace. A file with exactly this text is our own, and the answer to our request was lost: therefore each
   * text has an id that nobody else has. `readLatest` reads the log anew.
   */
  async create(
    version: number,
    text: string,
    content: VersionContent,
    readLatest: () => Promise<LatestVersion>,
  ): Promise<boolean> {
    const path = this.#names.pathOf(version);
    const isOurs =
      (await this.#storage.create(path, text)) || (await this.#storage.read(path))?.toString('utf8') === text;
    if (!isOurs) return false;
    if (version === 0 || (await this.#isThere(version - 1))) return true;
    // A purge has removed the version before. The purge came before this version, so that nobody sees it; or it came
    // after this version, and follows from it.
    if (follows(await readLatest(), content)) return true;
    await this.#storage.erase([path]);
    return false;
  }

  /** False if somebody has made a later version. */
  async isLatest(version: number): Promise<boolean> {
    for await (const _ of this.#from(version + 1)) return false;
    return true;
  }

  /** When a version was stored, by the clock of the store, ms since 1970; 0 if it is not there. */
  async storedAt(version: number): Promise<number> {
    for await (const { path, modified } of this.#from(version)) {
      if (path === this.#names.pathOf(version)) return modified;
    }
    return 0;
  }

  /**
   * Erases all files of the folder but those of this version and later ones, and the files to keep. `until`: ms since
   * 1970.
   */
  async eraseBefore(version: number, until: number, isKept: (path: string) => boolean = () => false): Promise<void> {
    const { folder, versionOf } = this.#names;
    const stays = ({ path }: Pick<Stored, 'path'>) => isKept(path) || (versionOf(path) ?? -1) >= version;
    await this.#storage.eraseAllBut(folder, stays, until);
  }

  async #isThere(version: number): Promise<boolean> {
    for await (const found of this.#from(version)) if (found.version === version) return true;
    return false;
  }

  async *#from(version: number) {
    const { folder, before, versionOf } = this.#names;
    for await (const stored of this.#storage.list(folder, before(version))) {
      const found = versionOf(stored.path);
      if (found !== undefined && found >= version) yield { ...stored, version: found };
    }
  }
}

/** True if a version has a receipt that another one wrote, or knows a file that it added. */
function follows(latest: LatestVersion, { entries, paths }: VersionContent): boolean {
  const hasEntry = ([name, text]: [string, string]) => isReceiptEntry(name) && latest.entries.get(name) === text;
  return [...entries].some(hasEntry) || paths.some((path) => latest.knows(path));
}
