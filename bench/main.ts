// npm run bench [-- NAME…]: speed and memory as ratios of one run. Goals are printed beside what was measured.
import { benchArrow } from './arrow.ts';
import { benchErase } from './deletion.ts';
import { benchDuckDb } from './duckdb.ts';
import { printMachine } from './measure.ts';
import { benchParquet } from './parquet.ts';
import { benchRecords } from './records.ts';
import { benchScanner } from './scanner.ts';
import { benchStage } from './stage.ts';

const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  scanner: benchScanner,
  duckdb: benchDuckDb,
  parquet: benchParquet,
  arrow: benchArrow,
  erase: benchErase,
  records: benchRecords,
  stage: benchStage,
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0)
  throw new Error(`no such bench: ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}`);
printMachine();
for (const [name, bench] of Object.entries(BENCHES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.log(`\n${name}`);
  await bench();
}
