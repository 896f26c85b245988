import { transientError } from '../../../src/base/errors.ts';
import { DiskStorage } from '../../../src/storage/disk.ts';

/** The outcome of a request that changes something, by the number of such requests from 1. */
export type Outcome = 'normal' | 'dies before' | 'dies after' | 'answer lost' | 'seems taken';

/** A folder whose requests go wrong where a test says so; once one has died, so does every later one. */
export class FaultyStorage extends DiskStorage {
  /** The requests that changed something, in order. */
  readonly changes: string[] = [];
  readonly reads: string[] = [];
  readonly #outcomeOf: (change: string, count: number) => Outcome;
  #isDead = false;

  constructor(dir: string, outcomeOf: (change: string, count: number) => Outcome = () => 'normal') {
    super(dir);
    this.#outcomeOf = outcomeOf;
  }

  override async read(path: string): Promise<Buffer | undefined> {
    this.#live();
    this.reads.push(path);
    return super.read(path);
  }

  override async create(path: string, text: string): Promise<boolean> {
    return this.#change(`create ${path}`, () => super.create(path, text), false);
  }

  override async write(path: string, text: string): Promise<void> {
    return this.#change(`write ${path}`, () => super.write(path, text), undefined);
  }

  override async putFile(file: string, path: string): Promise<void> {
    return this.#change(`put ${path}`, () => super.putFile(file, path), undefined);
  }

  override async remove(paths: readonly string[]): Promise<void> {
    return this.#change(`remove ${paths.join(' ')}`, () => super.remove(paths), undefined);
  }

  async #change<T>(what: string, work: () => Promise<T>, taken: T): Promise<T> {
    this.#live();
    this.changes.push(what);
    const outcome = this.#outcomeOf(what, this.changes.length);
    if (outcome === 'dies before') this.#die();
    const done = await work();
    if (outcome === 'dies after') this.#die();
    if (outcome === 'answer lost') throw transientError('the answer is lost');
    return outcome === 'seems taken' ? taken : done;
  }

  #die(): void {
    this.#isDead = true;
    this.#live();
  }

  #live(): void {
    if (this.#isDead) throw transientError('dead');
  }
}
