// Loads the export of a service into a DuckDB file, as `sync duckdb` does: node load.mjs dfinery.json events.duckdb
import { readFileSync } from 'node:fs';
import {
  createLogger,
  extractDeps,
  load,
  newLoadCounts,
  openDuckDbSink,
  openExportSession,
  parseSourceConfig,
  planRun,
  priorLoadsOf,
  systemClock,
} from 'dfinery-elt';

const [configuration, file] = process.argv.slice(2);
const env = (name) => process.env[name];
const { config } = parseSourceConfig(JSON.parse(readFileSync(configuration, 'utf8')), env);
const logger = createLogger(
  ({ level, message }) => console.error(`${level} ${message}`),
  'warn',
  (text) => text,
);
const runtime = { clock: systemClock, random: Math.random, env, logger, signal: new AbortController().signal };

const session = openExportSession(config, runtime);
const sink = await openDuckDbSink({ ...config, ...runtime, file });
const counts = newLoadCounts();
try {
  // The days that are missing: what the file remembers of earlier runs decides.
  const prior = priorLoadsOf(sink.state);
  const plan = planRun({ settings: config, delivery: 'fresh', prior, now: systemClock.now() });
  await load(plan, sink, { ...extractDeps(config, session.service, runtime), counts });
} finally {
  await sink.close();
  await session.close();
}
console.log(`${counts.stored.rows} rows in ${counts.stored.windows} windows`);
