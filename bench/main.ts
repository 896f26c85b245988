// npm run bench [-- --shapes S,… --works W,… --rounds N --start]: speed and memory of what users wait for.
// It measures the real command from the start of its process to the last byte. With --start it measures starts alone.
import { parseArgs } from 'node:util';
import { benchEndToEnd } from './end-to-end.ts';
import { printMachine } from './measure.ts';
import { SHAPES, unknownShape } from './shapes.ts';
import { benchStart } from './start.ts';
import { WORKS } from './works.ts';

const { values } = parseArgs({
  options: {
    shapes: { type: 'string', default: Object.keys(SHAPES).join(',') },
    works: { type: 'string', default: WORKS.map(({ name }) => name).join(',') },
    rounds: { type: 'string', default: '3' },
    start: { type: 'boolean', default: false },
  },
});
const [shapes, works] = [values.shapes.split(','), values.works.split(',')];
for (const shape of shapes) if (!(shape in SHAPES)) unknownShape(shape);
const names = WORKS.map(({ name }) => name);
for (const work of works)
  if (!names.includes(work)) throw new Error(`no such work: ${work}; there are ${names.join(', ')}`);

printMachine();
console.log(`${new Date().toISOString().slice(0, 10)}\n`);
if (values.start) await benchStart();
else await benchEndToEnd({ shapes, works, rounds: Number(values.rounds) });
