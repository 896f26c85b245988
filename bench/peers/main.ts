// npm run bench:peers [-- --shapes S,… --peers TEXT --rounds N --cuts-only]: other tools at the same work, each in a virtual
// environment with pinned versions (python3 and a package index are needed); prints two Markdown tables.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CommandFailure, type Measured, measured, median, printMachine } from '../measure.ts';
import { scratch, serving } from '../serving.ts';
import { type Prepared, prepare } from '../shapes.ts';
import { sizeBelow } from '../size.ts';
import { countRows } from './count.ts';
import { environmentOf, install, PEERS, type Peer, type Task } from './tools.ts';

/** Maximum time of a tool (seconds). */
const LONGEST = '900';
const CUTS: readonly (readonly [string, (atByte: number) => object])[] = [
  ['a clean end within a row', (at_byte) => ({ kind: 'cut', at_byte })],
  ['a reset', (at_byte) => ({ kind: 'reset', at_byte })],
  ['fewer bytes than Content-Length says', () => ({ kind: 'wrong_length', by: 100_000 })],
];

const { values } = parseArgs({
  options: {
    shapes: { type: 'string', default: '10x20000,10x100000' },
    peers: { type: 'string', default: '' },
    rounds: { type: 'string', default: '1' },
    'cuts-only': { type: 'boolean', default: false },
  },
});
const peers = PEERS.filter(({ name }) => name.toLowerCase().includes(values.peers.toLowerCase()));
for (const { venv } of peers) if (venv !== undefined) install(venv);

printMachine();
console.log(`${new Date().toISOString().slice(0, 10)}\n`);
if (!values['cuts-only']) {
  console.log('| tool | rows | time | CPU | peak | written |\n|---|---|---|---|---|---|');
  for (const shape of values.shapes.split(',')) await compare(shape);
}
await compareCuts();

/** Compares the tools by turns on whole exports. */
async function compare(shape: string): Promise<void> {
  const data = await prepare(shape);
  const runs = new Map<Peer, Run[]>(peers.map((peer) => [peer, []]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [peer, own] of runs) {
      if (peer.mostRows < data.rows) continue;
      console.error(`${shape} ${peer.name}, round ${round + 1} of ${values.rounds}`);
      try {
        own.push(await runOf(peer, data));
      } catch (error) {
        if (!(error instanceof CommandFailure)) throw error;
        console.error(error.message.slice(-1_000));
      }
    }
  }
  for (const [{ name }, own] of runs) {
    if (own.length === 0) continue;
    const of = (pick: (run: Run) => number, digits: number) => median(own.map(pick)).toFixed(digits);
    console.log(
      `| ${name} | ${data.rows} | ${of((run) => run.seconds, 1)} s | ${of((run) => run.cpuSeconds, 1)} s | ${of((run) => run.peakMb, 0)} MB | ${of((run) => run.writtenMb, 0)} MB |`,
    );
  }
}

interface Run extends Measured {
  readonly writtenMb: number;
}

async function runOf(peer: Peer, data: Prepared): Promise<Run> {
  return atWork(peer, data, {}, async (run, target) => {
    const done = await run();
    const rows = await countRows(target);
    if (rows !== data.rows) console.error(`${peer.name} kept ${rows} rows of ${data.rows}`);
    return { ...done, writtenMb: (await sizeBelow(target)) / 1e6 };
  });
}

/** Compares the tools on one day whose export always ends after three fifths of its bytes, in three ways. */
async function compareCuts(): Promise<void> {
  const whole = await prepare('10x20000');
  const data = { ...whole, days: whole.days.slice(-1), files: whole.files.slice(-1), rows: whole.rows / 10 };
  const atByte = Math.floor((await sizeBelow(data.files[0] ?? '')) * 0.6);
  console.log(`\n| tool | ${CUTS.map(([title]) => title).join(' | ')} |\n|---|${'---|'.repeat(CUTS.length)}`);
  for (const peer of peers) {
    const cells: string[] = [];
    for (const [title, fault] of CUTS) {
      console.error(`${peer.name}, ${title}`);
      cells.push(await cutOf(peer, data, fault(atByte)));
    }
    console.log(`| ${peer.name} | ${cells.join(' | ')} |`);
  }
}

/** Describes the result of a tool on a broken export. */
function cutOf(peer: Peer, data: Prepared, fault: object): Promise<string> {
  return atWork(peer, data, fault, async (run, target) => {
    try {
      await run();
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      console.error(error.message.slice(-300));
      const kept = await countRows(target);
      return `fails (exit ${error.code}), ${kept === 0 ? 'nothing kept' : `${kept} of ${data.rows} rows kept`}`;
    }
    const kept = await countRows(target);
    return kept === data.rows ? 'succeeds, all rows' : `**succeeds with ${kept} of ${data.rows} rows**`;
  });
}

/** Runs work with a scratch folder, the served days and the tool's command. */
function atWork<T>(
  peer: Peer,
  { dir: served, days }: Prepared,
  fault: object,
  work: (run: () => Promise<Measured>, target: string) => Promise<T>,
): Promise<T> {
  const serve = (url: string) =>
    scratch(url, async (dir, config) => {
      const task: Task = { dir, days, url, config };
      const target = join(dir, peer.target);
      const command = ['timeout', LONGEST, ...peer.command(task)];
      return work(() => measured(command, undefined, environmentOf(peer, task)), target);
    });
  return serving(served, serve, fault);
}
