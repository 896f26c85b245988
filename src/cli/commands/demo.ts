import { addDays, dayAt } from '../../base/days.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import type { ResultRow } from '../../engine/session/engine.ts';
import { writeNamedFile } from '../../fs/named-file.ts';
import { startSimulator } from '../../simulator/simulator.ts';
import type { PlaceOptions } from '../../targets/contract.ts';
import { duckdb } from '../../targets/targets.ts';
import { argument, defineCommand, text, withDefault } from '../command.ts';
import { placeOptions, readConfiguration } from '../configuration.ts';
import type { Context } from '../context.ts';
import { reportPage } from '../report/report-page.ts';
import type { Summary } from '../results.ts';
import { runSync } from '../run/run.ts';
import { describeSummary } from '../run/summary.ts';
import { tableLines, wrapped } from '../text-layout.ts';

const DAYS = 14;
const EVENTS_PER_DAY = 2_000;
/** Queries over the table that was just loaded, as a person would write them. */
const DEMO_QUERIES: readonly { readonly title: string; readonly sql: string }[] = [
  {
    title: 'Events a day',
    sql: `SELECT df_server_datetime::DATE::VARCHAR AS day, count(*) AS events,
  bar(count(*), 0, max(count(*)) OVER (), 30) AS chart
FROM event_logs
GROUP BY ALL ORDER BY day DESC LIMIT ${DAYS}`,
  },
  {
    title: 'The most frequent events',
    sql: `SELECT df_event_name, count(*) AS events,
  count(DISTINCT df_unified_id) AS people
FROM event_logs
GROUP BY ALL ORDER BY events DESC LIMIT 5`,
  },
  {
    title: 'Revenue by day: event_logs holds each purchase once, however many items it has',
    sql: `SELECT df_server_datetime::DATE::VARCHAR AS day,
  count(*) AS purchases,
  round(sum(df_total_purchase_amount)) AS revenue
FROM event_logs
WHERE df_event_name = 'df_purchase'
GROUP BY ALL ORDER BY day DESC LIMIT 5`,
  },
  {
    title: 'Who buys: user_profiles has the attributes of people',
    sql: `SELECT df_membership, count(DISTINCT df_unified_id) AS people,
  round(sum(df_total_purchase_amount)) AS revenue
FROM event_logs JOIN user_profiles USING (df_unified_id)
WHERE df_event_name = 'df_purchase'
GROUP BY ALL ORDER BY revenue DESC`,
  },
  {
    title: 'What sells: one row an item',
    sql: `SELECT df_item_name, sum(df_quantity) AS sold,
  round(sum(df_price * df_quantity)) AS revenue
FROM event_items
GROUP BY ALL ORDER BY sold DESC LIMIT 5`,
  },
];

const DEFAULT_FILE = 'dfinery-demo.duckdb';

export const command = defineCommand({
  options: {
    file: argument(withDefault(DEFAULT_FILE, text('The DuckDB file'))),
  },
  examples: ['demo', 'demo mine.duckdb'],
  docsPage: 'getting-started.md',
  async run({ file }, context) {
    const { terminal } = context;
    const say = (text: string) => {
      for (const line of wrapped(text, terminal.columns)) terminal.result(line);
    };
    say(`An embedded service on loopback stands in for the real one; its last ${DAYS} days go into ${file}.`);
    terminal.result('');
    const summary = await loadDemo(file, context);
    say(describeSummary(summary, { target: duckdb, path: file }));
    terminal.result('');
    const place = placeOptions(readConfiguration({}, context), context);
    for (const line of queryLines(await queryDemo(file, place), terminal.columns)) terminal.result(line);
    const output = await writeDemoReport(file, place, context.clock.now());
    say(`A page about it, to be opened in a browser: ${output}`);
    terminal.result('');
    for (const line of nextSteps(file)) terminal.result(line);
    return { result: summary, lines: [] };
  },
});

async function loadDemo(file: string, context: Context): Promise<Summary> {
  const simulator = await startSimulator({ clock: context.clock, scenario: { events_per_day: EVENTS_PER_DAY } });
  try {
    // A fixed start in the past would leave a gap when the demo is run again after a month.
    const start = addDays(dayAt(context.clock.now()), 1 - DAYS);
    const keys = {
      base_url: simulator.url,
      service_id: simulator.scenario.service_id,
      export_token: simulator.scenario.export_token,
      start_date: start,
      on_gap: 'warn',
      user_profiles: true,
    };
    const run = { place: { target: duckdb, path: file }, config: readConfiguration(keys, context), days: {} };
    const { summary, error } = await runSync(run, context);
    if (error !== undefined) throw error;
    return summary;
  } finally {
    await simulator.close();
  }
}

async function queryDemo(file: string, options: PlaceOptions): Promise<ResultRow[][]> {
  const { withFile } = await import('../../engine/session/open-engine.ts');
  return await withFile({ ...options, file, access: 'read' }, async (engine) => {
    const answers: ResultRow[][] = [];
    for (const { sql } of DEMO_QUERIES) answers.push(await engine.rows(sql));
    return answers;
  });
}

/** Writes the report beside the file, and returns its path. */
async function writeDemoReport(file: string, options: PlaceOptions, now: number): Promise<string> {
  const report = await (await duckdb.maintenance()).report(file, options);
  const output = `${file.replace(/\.duckdb$/, '')}.html`;
  const page = reportPage(report, { place: `duckdb ${file}`, now, historyDays: DEFAULT_HISTORY_DAYS });
  await writeNamedFile(output, page, `the report ${output}`);
  return output;
}

function queryLines(answers: readonly (readonly ResultRow[])[], columns: number): string[] {
  return answers.flatMap((rows, i) => {
    const { title, sql } = DEMO_QUERIES[i];
    const query = sql.split('\n').map((line) => `  │ ${line}`);
    const header = Object.keys(rows[0] ?? {});
    const texts = rows.map((row) => Object.values(row).map((value) => String(value ?? '')));
    return [...wrapped(title, columns), ...query, ...tableLines(header, texts, columns), ''];
  });
}

/** The commands that go on, as they are written in the folder of the package. */
function nextSteps(file: string): string[] {
  return [
    'How to go on',
    `  npx dfinery-elt demo${file === DEFAULT_FILE ? '' : ` ${file}`}   # again: only what is new`,
    `  npx dfinery-elt verify duckdb ${file}   # rows against receipts`,
    '  npx dfinery-elt simulate   # the embedded service',
    '  npx dfinery-elt init   # your own service',
  ];
}
