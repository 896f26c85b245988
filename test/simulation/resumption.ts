import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS } from './common.ts';

interface Line {
  readonly kind: string;
  readonly run: string;
  readonly at: string;
  readonly list?: string;
  readonly resumes?: string;
  readonly id?: string;
  readonly outcome?: string;
}

/** One run as the ledger has it. */
interface Run {
  readonly open: Line;
  readonly done: ReadonlySet<string>;
  readonly decided: ReadonlySet<string>;
  readonly isClosed: boolean;
}

/** The runs in the ledger of a folder, read without any code of the program. */
export class Runs {
  readonly #folder: string;
  /** Their hashes, by the lists that were given. */
  readonly #hashes = new Map<string, string>();
  #seen = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Called after each run with a list that it may have had. */
  learn(ids: readonly string[]): void {
    const runs = this.#all();
    const latest = runs.at(-1);
    if (runs.length > this.#seen && latest?.open.list !== undefined) this.#hashes.set(keyOf(ids), latest.open.list);
    this.#seen = runs.length;
  }

  /** How many of a list the unfinished run has done that a run at `now` goes on with. */
  doneOf(ids: readonly string[], now: number): number {
    const hash = this.#hashes.get(keyOf(ids));
    const runs = this.#all();
    const latest = runs.findLast(({ open }) => open.list === hash);
    if (hash === undefined || latest === undefined || latest.isClosed) return 0;
    if (runs.some(({ open }) => open.resumes === latest.open.run)) return 0;
    const done = new Set<string>();
    for (let at: Run | undefined = latest; at !== undefined; at = before(at, runs)) {
      const isRecent = now - Date.parse(at.open.at) < DAY_MS;
      if (at === latest && !isRecent) return 0;
      if (isRecent) for (const id of at.done) done.add(id);
    }
    return done.size;
  }

  /** How many different people are decided by the latest run and those that it goes on with. */
  get decided(): number {
    const runs = this.#all();
    const decided = new Set<string>();
    for (let at = runs.at(-1); at !== undefined; at = before(at, runs)) for (const id of at.decided) decided.add(id);
    return decided.size;
  }

  #all(): Run[] {
    if (!existsSync(this.#folder)) return [];
    const names = readdirSync(this.#folder).filter((name) => name.endsWith('.jsonl'));
    return names.sort().flatMap((name) => runIn(readFileSync(join(this.#folder, name), 'utf8')));
  }
}

const keyOf = (ids: readonly string[]): string => [...ids].sort().join(' ');

const before = ({ open }: Run, runs: readonly Run[]): Run | undefined =>
  open.resumes === undefined ? undefined : runs.find((one) => one.open.run === open.resumes);

function runIn(text: string): Run[] {
  const lines = text.split('\n').slice(0, -1).flatMap(lineOf);
  const [open] = lines;
  if (open?.kind !== 'open') return [];
  const after = lines.filter(({ kind }) => kind === 'after');
  const idsOf = (outcomes: readonly string[]) =>
    new Set(after.flatMap(({ id = '', outcome = '' }) => (outcomes.includes(outcome) ? [id] : [])));
  const isClosed = lines.at(-1)?.kind === 'close';
  return [{ open, done: idsOf(['done']), decided: idsOf(['done', 'rejected']), isClosed }];
}

function lineOf(text: string): Line[] {
  try {
    return [JSON.parse(text) as Line];
  } catch {
    return [];
  }
}
