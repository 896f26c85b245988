import { existsSync } from 'node:fs';
import { addDays, dayAt } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { shellWord } from '../../base/text.ts';
import { writeNamedFile } from '../../fs/named-file.ts';
import { startSimulator } from '../../simulator/simulator.ts';
import type { Place } from '../../targets/contract.ts';
import { duckdb } from '../../targets/targets.ts';
import { defineCommand, pathOption, withDefault } from '../command.ts';
import { readConfiguration } from '../configuration.ts';
import type { Context } from '../context.ts';
import { placeOf } from '../places.ts';
import type { Summary } from '../results.ts';
import { runSync } from '../run/run.ts';
import { describeSummary } from '../run/summary.ts';
import { tableLines, wrappedLines } from '../terminal/layout.ts';
import { makeReportPage } from './report.ts';

const DEMO_DAYS = 14;
const EVENTS_PER_DAY = 2_000;
const DEFAULT_FILE = 'dfinery-demo.duckdb';

export const command = defineCommand({
  arguments: { file: withDefault(DEFAULT_FILE, pathOption('The DuckDB file')) },
  examples: ['demo', 'demo mine.duckdb'],
  docsPage: 'getting-started.md',
  async run({ file }, context) {
    const output = `${file.replace(/\.duckdb$/, '')}.html`;
    if (existsSync(output) && !existsSync(file))
      throw configError(`${output} is there already, and the demo writes its page there: name another file.`);
    const { columns, print } = context.terminal;
    const intro = `An embedded service on loopback stands in for the real one; its last ${DEMO_DAYS} days go into ${file}.`;
    for (const line of [...wrappedLines(intro, columns), '']) print(line);
    const defaults = readConfiguration({}, context);
    const place = placeOf(duckdb, file, defaults, context);
    const summary = await loadDemo(place, context);
    await writeNamedFile(output, await makeReportPage(place, defaults), `the report ${output}`, 'page');
    const lines = [
      ...wrappedLines(describeSummary(summary, place), columns),
      '',
      ...(await queryLines(place, columns)),
      ...wrappedLines(`A page about it, to be opened in a browser: ${output}`, columns),
      '',
      ...nextSteps(file),
    ];
    return { result: summary, lines };
  },
});

async function loadDemo(place: Place, context: Context): Promise<Summary> {
  const simulator = await startSimulator({ clock: context.clock, scenario: { events_per_day: EVENTS_PER_DAY } });
  try {
    // A fixed start in the past would leave a gap when the demo is run again after a month.
    const start_date = addDays(dayAt(context.clock.now()), 1 - DEMO_DAYS);
    const { service_id, export_token } = simulator.scenario;
    const service = { base_url: simulator.url, service_id, export_token };
    // Whom `forget` has erased from the file stays away.
    const erasure = { ledger_dir: context.env.DFINERY_LEDGER_DIR };
    const config = readConfiguration({ ...service, start_date, on_gap: 'warn', user_profiles: true, erasure }, context);
    const { summary, failure } = await runSync({ place, config, daySelection: {} }, context);
    if (failure !== undefined) throw failure.error;
    return summary;
  } finally {
    await simulator.close();
  }
}

/** Queries over the table that was just loaded, as a person would write them. */
const DEMO_QUERIES: readonly { readonly title: string; readonly sql: string }[] = [
  {
    title: 'Events a day',
    sql: `SELECT df_server_datetime::DATE::VARCHAR AS day, count(*) AS events,
  bar(count(*), 0, max(count(*)) OVER (), 30) AS chart
FROM event_logs
GROUP BY ALL ORDER BY day DESC LIMIT ${DEMO_DAYS}`,
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
    title: 'What sells: event_items has one row an item, also of views and carts',
    sql: `SELECT df_item_name, sum(df_quantity) AS sold
FROM event_items
WHERE df_event_name = 'df_purchase'
GROUP BY ALL ORDER BY sold DESC LIMIT 5`,
  },
];

async function queryLines(place: Place, columns: number): Promise<string[]> {
  const { withEngine } = await import('../../engine/session/open-engine.ts');
  return await withEngine(place.address, 'read', place, async (engine) => {
    const lines: string[] = [];
    for (const { title, sql } of DEMO_QUERIES) {
      const rows = await engine.rows(sql);
      const query = sql.split('\n').map((line) => `  │ ${line}`);
      const header = Object.keys(rows[0] ?? {});
      const cells = rows.map((row) => Object.values(row).map((value) => String(value ?? '')));
      lines.push(...wrappedLines(title, columns), ...query, ...tableLines(header, cells, columns), '');
    }
    return lines;
  });
}

/** The commands that go on, as they are written in the folder of the package. */
function nextSteps(file: string): string[] {
  return [
    'How to go on',
    `  npx dfinery-elt demo${file === DEFAULT_FILE ? '' : ` ${shellWord(file)}`}   # again: only what is new`,
    `  npx dfinery-elt verify duckdb ${shellWord(file)}   # rows against receipts`,
    '  npx dfinery-elt simulate   # the embedded service',
    '  npx dfinery-elt init   # your own service',
  ];
}
