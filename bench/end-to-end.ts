import { rmSync } from 'node:fs';
import { type Measured, measured, median, printGoal } from './measure.ts';
import { scratch, serving } from './serving.ts';
import { type Prepared, prepare, SHAPES } from './shapes.ts';
import { sizeBelow } from './size.ts';
import { type Job, type Place, WORKS, type Work } from './works.ts';

export interface Selection {
  readonly shapes: readonly string[];
  readonly works: readonly string[];
  readonly rounds: number;
}

/** Medians of the runs of one command. */
interface Figures {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
  readonly writtenMb: number;
}

interface Result {
  readonly shape: string;
  readonly work: Work;
  readonly ours: Figures;
  readonly bare: Figures | undefined;
}

const HEAD =
  '| work | rows | ours | CPU | peak | written | bare DuckDB | CPU | peak | written | time |\n|---|---|---|---|---|---|---|---|---|---|---|';

/**
 * Measures the real command and DuckDB alone by turns, each from the start of its process to its end. Exports are
 * served on loopback. Prints the lines of a Markdown table as each shape is done, then the goals.
 */
export async function benchEndToEnd({ shapes, works, rounds }: Selection): Promise<void> {
  const chosen = WORKS.filter(({ name }) => works.includes(name));
  const results: Result[] = [];
  console.log(HEAD);
  for (const shape of shapes) {
    const data = await prepare(shape);
    await serving(data.dir, (url) =>
      scratch(url, async (dir, config) => {
        const done = await measureShape(shape, { data, dir, config }, chosen, rounds);
        console.log(done.map(lineOf).join('\n'));
        results.push(...done);
      }),
    );
  }
  for (const result of results) printAim(result);
}

async function measureShape(shape: string, place: Place, works: readonly Work[], rounds: number): Promise<Result[]> {
  const runs = new Map<string, Run[]>();
  const note = (key: string, run: Run) => runs.set(key, [...(runs.get(key) ?? []), run]);
  for (let round = 0; round < rounds; round++) {
    for (const work of works) {
      console.error(`${shape} ${work.name}, round ${round + 1} of ${rounds}`);
      if (work.bare !== undefined) note(`bare ${work.name}`, await runOf(work.bare(place), false, place.data));
      const job = await work.ours(place);
      note(work.name, await runOf(job, work.isRereading === true, place.data));
      if (!works.some((other) => other.isRereading && works.indexOf(other) === works.indexOf(work) + 1))
        rmSync(job.target, { recursive: true, force: true });
    }
  }
  return works.map((work) => ({
    shape,
    work,
    ours: figuresOf(runs.get(work.name) ?? []),
    bare: work.bare && figuresOf(runs.get(`bare ${work.name}`) ?? []),
  }));
}

interface Run extends Measured {
  readonly writtenMb: number;
}

async function runOf(job: Job, isRereading: boolean, data: Prepared): Promise<Run> {
  if (!isRereading) rmSync(job.target, { recursive: true, force: true });
  const run = await measured(job.command, job.out);
  checkRows(run, data);
  return { ...run, writtenMb: (await sizeBelow(job.target)) / 1e6 };
}

/** Throws if a run lost rows: such a run is fast. */
function checkRows({ stdout }: Measured, data: Prepared): void {
  const [, rows] = /"rows":(\d+)/.exec(stdout) ?? [];
  if (rows !== undefined && Number(rows) !== data.rows) throw new Error(`${rows} rows of ${data.rows}`);
}

function figuresOf(runs: readonly Run[]): Figures {
  const of = (pick: (run: Run) => number) => median(runs.map(pick));
  return {
    seconds: of((run) => run.seconds),
    cpuSeconds: of((run) => run.cpuSeconds),
    peakMb: of((run) => run.peakMb),
    writtenMb: of((run) => run.writtenMb),
  };
}

const cells = ({ seconds, cpuSeconds, peakMb, writtenMb }: Figures) =>
  `${seconds.toFixed(1)} s | ${cpuSeconds.toFixed(1)} s | ${peakMb} MB | ${writtenMb.toFixed(0)} MB`;

function lineOf({ shape, work, ours, bare }: Result): string {
  const [theirs, ratio] =
    bare === undefined ? ['| | |', ''] : [cells(bare), `${(ours.seconds / bare.seconds).toFixed(2)}×`];
  return `| ${work.title} | ${shape} | ${cells(ours)} | ${theirs} | ${ratio} |`;
}

/** Rows from which on the start of a process hardly counts. */
const MANY_ROWS = 200_000;

function printAim({ shape, work, ours, bare }: Result): void {
  const { days = 0, rowsPerDay = 0 } = SHAPES[shape] ?? {};
  const rows = days * rowsPerDay;
  if (rows < MANY_ROWS) return;
  const name = `${shape} ${work.name}`;
  if (work.aim !== undefined && bare !== undefined && days >= 10) {
    const detail = `${ours.seconds.toFixed(1)} s against ${bare.seconds.toFixed(1)} s`;
    printGoal({ name, ratio: ours.seconds / bare.seconds, goal: ['<=', work.aim], detail });
  }
  if (work.rowsPerSecond !== undefined) {
    const detail = `${Math.round(rows / ours.seconds)} rows a second`;
    printGoal({ name, ratio: rows / ours.seconds / work.rowsPerSecond, goal: ['>=', 1], detail });
  }
}
