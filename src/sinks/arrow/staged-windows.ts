import { type FileHandle, open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { codeOf, Failure } from '../../base/errors.ts';
import type { Window } from '../../extract/window.ts';
import { columnKey, type Typed } from '../../table/columns.ts';
import { readFully } from '../rows/row-blocks.ts';
import type { ArrowBuilder, BuildJob } from './arrow-builder.ts';
import type { SentBatches } from './arrow-stream.ts';
import { BATCH_BYTES } from './build/batch-builder.ts';
import type { PackedBatch } from './build/packed.ts';
import type { FilePlan } from './build/task.ts';

const OWNER_FILE = 0o600;
/** A window is staged where the disk has room for this many times what was downloaded: batches take about as much. */
const ROOM = 2;

type Builder = Pick<ArrowBuilder, 'build' | 'rowBytes' | 'usesThreads'>;

/** What the rows of a window become. */
export type WindowJob = Omit<BuildJob, 'windows'>;

/** A window whose batches are in a file, one behind the other: their nodes, then their buffers. */
interface StagedWindow {
  readonly job: WindowJob;
  readonly path: string;
  readonly sizes: { readonly rows: number; readonly nodes: number; readonly bytes: number }[];
  readonly rescued: (readonly [name: string, cells: number])[];
}

/**
 * Windows whose batches threads build while later windows are still downloaded. The schema of the stream is not known
 * then: a window is built with the columns and types known so far, and built again by the caller if these have changed.
 */
export class StagedWindows {
  readonly #builder: Builder;
  readonly #folder: string;
  readonly #jobOf: (window: Window) => WindowJob;
  readonly #staged = new Map<Window, StagedWindow>();
  readonly #waiting: Window[] = [];
  #working: Promise<void> | undefined;
  #failure: unknown;
  #bytes = 0;
  #isEnded = false;

  /** `folder`: an empty private one. `jobOf`: by what is known of the columns when it is called. */
  constructor(builder: Builder, folder: string, jobOf: (window: Window) => WindowJob) {
    this.#builder = builder;
    this.#folder = folder;
    this.#jobOf = jobOf;
  }

  /** Nothing of the window's rows may depend on other windows; its files stay until `drop`. */
  add(window: Window): void {
    this.#bytes += window.receipt.bytes;
    if (this.#isEnded) return;
    this.#waiting.push(window);
    if (this.#builder.usesThreads(this.#bytes)) this.#working ??= this.#work();
  }

  /** Waits for the window at work; those that wait are not staged. Throws what failed. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await this.#working;
    if (this.#failure !== undefined) throw this.#failure;
  }

  has(window: Window): boolean {
    return this.#staged.has(window);
  }

  /** The places of a staged window's columns in the stream, for which its job is this; undefined where it must be built again. */
  placesOf(window: Window, { plans, columns }: WindowJob): number[] | undefined {
    const staged = this.#staged.get(window);
    if (staged === undefined) return undefined;
    const { job, sizes } = staged;
    const places = placesIn(columns, job.columns);
    if (places.includes(-1) || !job.plans.every((plan, i) => isDeepStrictEqual(placed(plan, places), plans[i]))) {
      return undefined;
    }
    // Columns that came later are null in every row, and take their room all the same.
    const added = this.#builder.rowBytes(columns) - this.#builder.rowBytes(job.columns);
    if (sizes.some(({ rows }) => rows * added > BATCH_BYTES)) return undefined;
    return [0, ...places.map((place) => place + 1), columns.length + 1];
  }

  /** The batches of a staged window. `isReused`: their memory is needed no more when the next ones are asked for. */
  async *read(window: Window, isReused: boolean): AsyncGenerator<SentBatches> {
    const staged = this.#staged.get(window);
    if (staged === undefined) return;
    const file = await open(staged.path, 'r');
    try {
      let at = 0;
      let rescued = staged.rescued;
      let buffer = new ArrayBuffer(isReused ? Math.max(0, ...staged.sizes.map(({ bytes }) => bytes)) : 0);
      for (const { rows, nodes, bytes } of staged.sizes) {
        if (!isReused) buffer = new ArrayBuffer(bytes);
        const batch = { rows, nodes: new Float64Array(nodes), buffer, bytes };
        await readFully(file, new Uint8Array(batch.nodes.buffer), batch.nodes.byteLength, at);
        await readFully(file, new Uint8Array(buffer, 0, bytes), bytes, at + batch.nodes.byteLength);
        at += batch.nodes.byteLength + bytes;
        yield { batches: [batch], rows, rescued };
        rescued = [];
      }
    } finally {
      await file.close();
    }
  }

  /** Removes what was staged of a window. */
  async drop(window: Window): Promise<void> {
    const staged = this.#staged.get(window);
    if (staged !== undefined) await rm(staged.path, { force: true });
  }

  async #work(): Promise<void> {
    try {
      while (!this.#isEnded) {
        const window = this.#waiting.shift();
        if (window === undefined) break;
        if (await this.#hasRoom()) await this.#stage(window);
      }
    } catch (error) {
      this.#failure = error;
      this.#isEnded = true;
    }
    this.#working = undefined;
  }

  async #hasRoom(): Promise<boolean> {
    const { bavail, bsize } = await statfs(this.#folder);
    return bavail * bsize > ROOM * this.#bytes;
  }

  async #stage(window: Window): Promise<void> {
    const path = join(this.#folder, `${this.#staged.size + 1}.batches`);
    const staged: StagedWindow = { job: this.#jobOf(window), path, sizes: [], rescued: [] };
    let file: FileHandle | undefined;
    try {
      file = await open(path, 'wx', OWNER_FILE);
      await this.#write(window, staged, file);
      this.#staged.set(window, staged);
    } catch (error) {
      await rm(path, { force: true });
      if (codeOf(error) === undefined || error instanceof Failure) throw error;
      // The disk is full or refuses the file: the window is built when it is sent, as it would be without this file.
      this.#isEnded = true;
    } finally {
      await file?.close();
    }
  }

  async #write(window: Window, { job, sizes, rescued }: StagedWindow, file: FileHandle): Promise<void> {
    for await (const built of this.#builder.build({ windows: [window], ...job }, this.#bytes, true)) {
      for (const batch of built.batches) {
        sizes.push(sizeOf(batch));
        await file.writeFile(new Uint8Array(batch.nodes.buffer, 0, batch.nodes.byteLength));
        await file.writeFile(new Uint8Array(batch.buffer, 0, batch.bytes));
      }
      rescued.push(...built.rescued);
    }
  }
}

const sizeOf = ({ rows, nodes, bytes }: PackedBatch) => ({ rows, nodes: nodes.length, bytes });

/** Where columns are among others: the same column with the same type. -1 for one that is not there. */
function placesIn(all: readonly Typed[], columns: readonly Typed[]): number[] {
  const places = new Map(all.map(({ source, occurrence, type }, i) => [`${type} ${columnKey(source, occurrence)}`, i]));
  return columns.map(({ source, occurrence, type }) => places.get(`${type} ${columnKey(source, occurrence)}`) ?? -1);
}

/** A plan whose columns have got other places. */
const placed = (plan: FilePlan, places: readonly number[]): FilePlan => ({
  ...plan,
  targets: plan.targets.map((target) => (target < 0 ? target : (places[target] ?? -1))),
});
