import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, dayAt } from '../../base/days.ts';
import { EXIT } from '../../base/errors.ts';
import { DEFAULT_HISTORY_DAYS, parseSourceConfig } from '../../config/source.ts';
import { startSimulator } from '../../simulator/index.ts';
import { type QueryResult, queryDuckDb } from '../../sinks/duckdb/query.ts';
import { reportDuckDb } from '../../sinks/duckdb/report.ts';
import { openDuckDbSink } from '../../sinks/duckdb/sink.ts';
import { loaderOf } from '../../sinks/load.ts';
import { type Handler, text } from '../command.ts';
import type { Context } from '../context.ts';
import { writeReport } from '../report/write-report.ts';
import { describeSummary, EMPTY_SUMMARY, type Summary } from '../sync/summary.ts';
import { sync } from '../sync/sync.ts';
import { bar, tableLines } from '../table.ts';
import { CHART_QUERY, DEMO_QUERIES } from './demo-queries.ts';
import { SIMULATED } from './simulate.ts';

const DAYS = 14;
const ROWS_PER_DAY = 2_000;
const BAR_COLUMNS = 40;
/** The port changes from run to run; the service stays the same. */
const STORED_BASE_URL = 'http://demo.invalid';

export const demo: Handler = async (options, context) => {
  const file = text(options, 'file') ?? '';
  const { terminal } = context;
  terminal.result(`An embedded service on loopback stands in for the real one; its last ${DAYS} days go into ${file}.`);
  terminal.result('');
  const summary = await loadDemo(file, context);
  terminal.result(describeSummary(summary, file));
  terminal.result('');
  const [chart, ...answers] = await queryDuckDb({ file, lockWaitMs: 0, clock: context.clock, memoryLimit: '512MB' }, [
    CHART_QUERY,
    ...DEMO_QUERIES.map((query) => query.sql),
  ]);
  for (const line of [...chartLines(chart), ...queryLines(answers)]) terminal.result(line);
  const output = `${file.replace(/\.duckdb$/, '')}.html`;
  const found = await reportDuckDb({ file, lockWaitMs: 0, clock: context.clock, memoryLimit: '512MB' });
  await writeReport(found, { target: `duckdb ${file}`, output, historyDays: DEFAULT_HISTORY_DAYS }, context);
  terminal.result(`A page about it, to be opened in a browser: ${output}`);
  terminal.result('');
  for (const line of nextSteps(file)) terminal.result(line);
  return EXIT.done;
};

async function loadDemo(file: string, context: Context): Promise<Summary> {
  const spoolDir = mkdtempSync(join(tmpdir(), 'dfinery-demo-'));
  const simulator = await startSimulator({ ...SIMULATED, clock: context.clock, rowsPerDay: ROWS_PER_DAY });
  let summary = EMPTY_SUMMARY;
  try {
    // A fixed start in the past would leave a gap when the demo is run again after a month.
    const start = addDays(dayAt(context.clock.now()), 1 - DAYS);
    const { config } = parseSourceConfig(
      {
        base_url: simulator.url,
        service_id: SIMULATED.serviceId,
        export_token: SIMULATED.tokens.export,
        start_date: start,
        spool_dir: spoolDir,
        on_gap: 'warn',
      },
      () => undefined,
    );
    const onSummary = (found: Summary) => {
      summary = found;
    };
    const { clock, logger, signal } = context;
    const run = {
      config,
      days: { from: undefined, to: undefined, fullRefresh: false },
      maxWaitMs: undefined,
      storedBaseUrl: STORED_BASE_URL,
      onSummary,
    };
    const open = async () => loaderOf(await openDuckDbSink({ ...config, file, clock, logger, signal }));
    await sync(run, open, context);
  } finally {
    await simulator.close();
    rmSync(spoolDir, { recursive: true, force: true });
  }
  return summary;
}

function chartLines({ rows }: QueryResult): string[] {
  const largest = Math.max(...rows.map((row) => Number(row[1])));
  const lines = rows.map(([day, events]) => `  ${day}  ${bar(Number(events), largest, BAR_COLUMNS)} ${events}`);
  return ['Events a day', ...lines, ''];
}

function queryLines(answers: readonly QueryResult[]): string[] {
  return answers.flatMap(({ header, rows }, i) => {
    const { title, sql } = DEMO_QUERIES[i];
    return [title, ...sql.split('\n').map((line) => `  │ ${line}`), ...tableLines(header, rows), ''];
  });
}

const nextSteps = (file: string): string[] => [
  'How to go on',
  `  npm run demo                              again: only what is new is loaded`,
  `  npx dfinery-elt verify duckdb ${file}    the rows against their receipts`,
  `  npx dfinery-elt simulate                  the embedded service alone, with faults on demand`,
  `  npx dfinery-elt sync duckdb events.duckdb --config dfinery.json    your own service (README, "Your own data")`,
];
