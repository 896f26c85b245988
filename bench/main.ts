// npm run bench [-- NAME…] [--shapes S,…] [--works W,…] [--rounds N]: speed and memory as ratios of one run. Without a name
// what users wait for: the real command from the start of its process to the last byte. The other names are stages alone.
import { parseArgs } from 'node:util';
import { benchErase } from './deletion.ts';
import { benchEndToEnd } from './end-to-end.ts';
import { benchHashing } from './hashing.ts';
import { benchLongLog } from './long-log.ts';
import { printMachine } from './measure.ts';
import { benchRecords } from './records.ts';
import { benchScanner } from './scanner.ts';
import { SHAPES, unknownShape } from './shapes.ts';
import { benchStage } from './stage.ts';
import { benchStart } from './start.ts';
import { WORKS } from './works.ts';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    shapes: { type: 'string', default: Object.keys(SHAPES).join(',') },
    works: { type: 'string', default: WORKS.map(({ name }) => name).join(',') },
    rounds: { type: 'string', default: '3' },
  },
});
const [shapes, works] = [values.shapes.split(','), values.works.split(',')];
for (const shape of shapes) if (!(shape in SHAPES)) unknownShape(shape);
const names = WORKS.map(({ name }) => name);
for (const work of works)
  if (!names.includes(work)) throw new Error(`no such work: ${work}; there are ${names.join(', ')}`);

const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  'end-to-end': () => benchEndToEnd({ shapes, works, rounds: Number(values.rounds) }),
  scanner: benchScanner,
  hashing: benchHashing,
  records: benchRecords,
  stage: benchStage,
  start: benchStart,
  erase: benchErase,
  'delta-log': benchLongLog,
};

const wanted = positionals.length === 0 ? ['end-to-end'] : positionals;
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0)
  throw new Error(`no such bench: ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}`);
printMachine();
for (const name of wanted) {
  console.log(name === 'end-to-end' ? `\n${new Date().toISOString().slice(0, 10)}\n` : `\n${name}, a stage alone`);
  await BENCHES[name]?.();
}
