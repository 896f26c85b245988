import { join } from 'node:path';
import { median, printGoal, run } from './measure.ts';
import { prepared, ROWS } from './prepared.ts';
import { COMMAND, scratch, serving, span } from './serving.ts';

const HERE = import.meta.dirname;
const ROUNDS = 3;
/** The yardstick is slow: a part of the rows tells its speed. */
const YARD_ROWS = 100_000;

/** From the first request to the last byte of the stream, against csv-parse and apache-arrow's builders on the file alone. */
export async function benchArrow(): Promise<void> {
  const data = await prepared(1);
  const [ours, theirs, peak]: [number[], number[], number[]] = [[], [], []];
  await serving(data.dir, (url) =>
    scratch(url, {}, async (dir, config) => {
      const [file = ''] = data.files;
      for (let round = 0; round < ROUNDS; round++) {
        const yard = [join(HERE, 'arrow-builders.js'), join(dir, 'yard.arrows'), file, `${YARD_ROWS}`];
        theirs.push(YARD_ROWS / Number((await run(yard)).answer.seconds));
        const out = join(dir, 'ours.arrows');
        const sync = ['sync', 'arrow', out, '--config', config, ...span(data), '--json', '--log-level', 'warn'];
        const stream = await run([COMMAND, ...sync]);
        ours.push(ROWS / Number(stream.answer.seconds));
        peak.push(stream.peakMb);
      }
    }),
  );
  const [a, b] = [median(ours), median(theirs)];
  const rate = (rows: number) => `${Math.round(rows / 1_000)}k rows/s`;
  const detail = `${rate(a)} with the download against ${rate(b)} without, peak ${median(peak)} MB`;
  printGoal({ name: 'export -> Arrow stream', ratio: a / b, wanted: ['>=', 3], detail });
}
