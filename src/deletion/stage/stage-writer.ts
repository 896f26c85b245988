import { createHash, hash } from 'node:crypto';
import { REFUSALS, type Refusal } from '../input/refusal.ts';
import { DigestStore, LARGEST_NUMBER, PARTITIONS } from './digest-store.ts';
import { DECISIONS, EVERY_STREAM, Stage } from './stage.ts';
import { STEP, StepFile } from './step-file.ts';

/** In place of an offset: the requests so far for this id are withdrawn. */
const WITHDRAWAL = LARGEST_NUMBER;

/** Writes the input to the stage. Memory: 2 MiB of digests and 256 KiB of steps, for any number of rows. */
export class StageWriter {
  readonly #folder: string;
  readonly #steps: StepFile;
  readonly #digests: DigestStore;
  readonly #refused = new Map<Refusal, number>();
  #rows = 0;

  constructor(folder: string) {
    this.#folder = folder;
    this.#steps = new StepFile(folder);
    this.#digests = new DigestStore(folder);
  }

  addId(stream: number, id: string): void {
    const bytes = Buffer.from(id);
    this.#digests.add(sha256(bytes), this.#steps.add(STEP.id, stream, bytes));
    this.#rows++;
  }

  addRefused(stream: number, refusal: Refusal): void {
    this.#steps.add(STEP.refused, stream, Uint8Array.of(REFUSALS.indexOf(refusal)));
    this.#countRefused(refusal, 1);
    this.#rows++;
  }

  /** A row that withdraws the request for an id: it is refused itself, and so is every row before it with that id. */
  addWithdrawn(stream: number, id: string | undefined): void {
    this.addRefused(stream, 'withdrawn');
    if (id !== undefined) this.#digests.add(sha256(Buffer.from(id)), WITHDRAWAL);
  }

  addState(stream: number | undefined, text: string): void {
    this.#steps.add(STEP.state, stream ?? EVERY_STREAM, Buffer.from(text));
  }

  /** Ends the input: finds equal ids, refuses withdrawn ones, and counts. */
  finish(): Stage {
    this.#steps.flush();
    const { unique, withdrawn, digest } = compareIds(this.#digests, this.#steps);
    this.#digests.close();
    if (withdrawn > 0) this.#countRefused('withdrawn', withdrawn);
    const accepted = this.#rows - [...this.#refused.values()].reduce((sum, n) => sum + n, 0);
    const refused = new Map([...this.#refused].sort(([a], [b]) => REFUSALS.indexOf(a) - REFUSALS.indexOf(b)));
    const counts = { received: this.#rows, accepted, duplicates: accepted - unique, refused, unique, done: 0 };
    return new Stage(this.#folder, this.#steps, counts, digest);
  }

  /** Releases everything, for an input that could not be read to its end. */
  discard(): void {
    this.#steps.close();
    this.#digests.close();
  }

  #countRefused(refusal: Refusal, rows: number): void {
    this.#refused.set(refusal, (this.#refused.get(refusal) ?? 0) + rows);
  }
}

const sha256 = (bytes: Buffer): Buffer => hash('sha256', bytes, 'buffer');

interface Occurrences {
  readonly first: number;
  rows: number;
  isWithdrawn: boolean;
}

/** Marks repeated and withdrawn steps, one partition after the other; `digest` covers the other ids in sorted order. */
function compareIds(digests: DigestStore, steps: StepFile): { unique: number; withdrawn: number; digest: string } {
  const all = createHash('sha256');
  let [unique, withdrawn] = [0, 0];
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const found = [...occurrencesIn(partition, digests, steps)].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [id, { first, rows, isWithdrawn }] of found) {
      if (isWithdrawn) {
        steps.setDecision(first, DECISIONS.indexOf('withdrawn'));
        withdrawn += rows;
      } else {
        all.update(id, 'latin1');
        unique++;
      }
    }
  }
  return { unique, withdrawn, digest: all.digest('hex') };
}

function occurrencesIn(partition: number, digests: DigestStore, steps: StepFile): Map<string, Occurrences> {
  const found = new Map<string, Occurrences>();
  for (const [id, at] of digests.entries(partition)) {
    const known = found.get(id);
    if (at === WITHDRAWAL) {
      if (known) known.isWithdrawn = true;
    } else if (known) {
      steps.setFirst(at, known.first);
      known.rows++;
      known.isWithdrawn = false;
    } else {
      found.set(id, { first: at, rows: 1, isWithdrawn: false });
    }
  }
  return found;
}
