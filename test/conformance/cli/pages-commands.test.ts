import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newFolder } from '../../support/new-folder.ts';
import { daysBack, PROGRAM } from '../../support/processes/cli-child.ts';
import { until } from '../../support/wait.ts';

// Every fenced command of README and docs is run as it stands, page by page, in a folder that holds what the page assumes.
// The service is the embedded one. Commands of others that reach beyond this machine are stubs.

const ROOT = resolve(import.meta.dirname, '../../..');
const PAGES = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith('.md'),
);
const PAGE_LIMIT_MS = 60_000;
/** Persons of the embedded service. */
const PERSON = '00000017';
const ANOTHER = '00000023';

/** What a block that holds no command begins with: a drawing, a chain of types, paths. */
const NO_COMMANDS = /^( ┌|nothing → |lake\/events\/event_date=)/;

/** Values that a page leaves open, and those of its example company, as the embedded service has them. */
const SAID: readonly (readonly [RegExp, string])[] = [
  [/(\w+)=\S*…\S*/g, '$1=$$$1'],
  [/customer_id/g, 'member_no'],
  [/A-1001/g, PERSON],
  [/A-1002/g, '00000018'],
  [/--proof ID\b/g, `--proof ${ANOTHER}`],
  [/\/path\/to\/ledger/g, 'ledger'],
  [/\b2026-11-(\d\d)\b/g, ''],
  [/\b2026-10-02\b/g, daysBack(12)],
  // A service that runs on in a terminal of its own.
  [/^(.*dfinery-elt simulate > (\S+)) *$/gm, '$1 &\nfor _ in $(seq 100); do [ -s $2 ] && break; sleep 0.1; done'],
];

/** What stands for a command, as a script of bash that gets its words. */
const STUBS: Readonly<Record<string, string>> = {
  'dfinery-elt': `
    words=()
    for word in "$@"; do
      case $word in
        HASH | HEAD) words+=("$(cat "$STATE/$word")") ;;
        *) words+=("$word") ;;
      esac
    done
    case $1 in
      init) [ -f dfinery.json ] && exit ;; # asks in a terminal
      simulate) [[ $* == *--port* ]] || words+=(--port 0) ; exec "$NODE" "$PROGRAM" "\${words[@]}" ;;
    esac
    "$NODE" "$PROGRAM" "\${words[@]}" | tee "$STATE/out"
    code=\${PIPESTATUS[0]}
    for word in HASH:hash 'HEAD:head of the ledger'; do
      found=$(grep -aoE "\\b\${word#*:}: [0-9a-f]+" "$STATE/out" | tail -1 | sed 's/.* //')
      [ -z "$found" ] || echo "$found" >"$STATE/\${word%:*}"
    done
    exit "$code"`,
  npx: 'exec "$@"',
  npm: `
    case "$1 \${2-}" in
      'run demo') exec dfinery-elt demo ;;
      'run '*) grep -q "\\"$2\\":" "$ROOT/package.json" ;;
      'ci ' | 'test ' | 'install '*) ;;
      *) exit 9 ;;
    esac`,
  git: 'ln -s . dfinery-elt',
  docker: `
    case $1 in
      build) [[ $2 != -f ]] || [ -f "$ROOT/$3" ] ;;
      push) ;;
      run) until [[ $1 == dfinery-elt ]]; do shift; done; cd data && exec "$@" ;;
      *) exit 9 ;;
    esac`,
  airflow: '[ -n "$*" ]',
  chgrp: '[ -n "$*" ]',
  dbt: '[ -f dbt_project.yml ]',
  pip: '[[ $1 == install ]]',
  // What the scripts do is tried by test/interop/databases.
  python: '[ -f "$1" ] && [ -f "$2" ]',
  // They would change this machine.
  useradd: '[ -n "$*" ]',
  install: '[ -n "$*" ]',
  'your-reader': 'cat >/dev/null',
};

/** The command line of DuckDB, as far as it runs the statements of -c. */
const DUCKDB = `#!/usr/bin/env node
const { DuckDBConnection } = require(${JSON.stringify(join(ROOT, 'node_modules/@duckdb/node-api'))});
(async () => {
  const connection = await DuckDBConnection.create();
  await connection.run(process.argv[3]);
  connection.closeSync();
})();
`;

/** What a page assumes beside a configuration and a loaded file. */
const ASSUMED: Readonly<Record<string, string>> = {
  'docs/columns.md': "dfinery-elt sync arrow x.arrow --quiet; printf 'df_event_name,phone\\nlogin,010\\n' >export.csv",
  'docs/erasure-airbyte.md': `
    export DFINERY_BASE_URL=$SERVICE_URL DFINERY_SERVICE_ID=demo-service DFINERY_LEDGER_DIR=ledger
    dfinery-elt forget --id ${ANOTHER}; dfinery-elt forget --id ${ANOTHER} --execute --confirm HASH`,
  'docs/erasure.md': `printf 'member_no\\n${PERSON}\\n' >requests.csv`,
  // The provider's file of a day that is not loaded.
  'docs/operations.md': `
    curl -sS "$SERVICE_URL/api/v1/export/event?service_id=demo-service" -H 'Content-Type: application/json' \\
      -H "Authorization: Bearer $DFINERY_EXPORT_TOKEN" >${daysBack(12)}.csv \\
      -d '{"from_date":"${daysBack(12)}","to_date":"${daysBack(12)}","events_condition_type":"all","properties_condition_type":"all"}'`,
  'docs/scheduling.md':
    'export DFINERY_BASE_URL=$SERVICE_URL DFINERY_SERVICE_ID=demo-service; mkdir -p airflow/dags; export AIRFLOW_HOME=airflow',
};

const folder = newFolder();
const [bin, state, template] = ['bin', 'state', 'template'].map((name) => join(folder, name));
let service: ReturnType<typeof spawn>;
let variables: Record<string, string>;
beforeAll(async () => {
  for (const name of [bin, state, template]) mkdirSync(name);
  for (const [name, script] of Object.entries({ ...STUBS, duckdb: '' })) {
    const text = script === '' ? DUCKDB : `#!/usr/bin/env bash\n${script}\n`;
    writeFileSync(join(bin, name), text, { mode: 0o755 });
  }
  let said = '';
  writeFileSync(join(folder, 'scenario.json'), JSON.stringify({ events_per_day: 80 }));
  const words = [PROGRAM, 'simulate', '--port', '0', '--scenario', join(folder, 'scenario.json')];
  service = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'ignore'] });
  service.stdout?.on('data', (chunk) => {
    said += chunk;
  });
  await until(() => said.includes('\n'));
  const { export_token, ...config } = JSON.parse(said);
  const shared = { ...config, start_date: daysBack(9), target: 'duckdb', place: 'events.duckdb' };
  writeFileSync(join(template, 'dfinery.json'), JSON.stringify(shared));
  const paths = { PATH: `${bin}:${process.env.PATH}`, NODE: process.execPath, PROGRAM, ROOT, STATE: state };
  const given = { SERVICE_URL: config.base_url };
  variables = { ...paths, ...given, HOME: folder, TMPDIR: folder, DFINERY_EXPORT_TOKEN: export_token };
  expect(run(template, 'dfinery-elt sync duckdb events.duckdb --quiet')).toBe('');
  variables.DFINERY_IMPORT_TOKEN = 'demo-import-token';
});
afterAll(() => {
  service.kill();
});

/** Runs a script; the end of its output if it fails, else nothing. */
function run(cwd: string, script: string): string {
  const text = `set -euo pipefail; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n${script}\n`;
  const { status, stdout, stderr } = spawnSync('bash', ['-x', '-c', text], {
    ...{ cwd, env: variables, encoding: 'utf8', timeout: PAGE_LIMIT_MS, killSignal: 'SIGKILL' },
  });
  return status === 0 ? '' : `exit ${status}\n${stdout.slice(-1_000)}\n${stderr.slice(-2_000)}`;
}

const said = (block: string): string =>
  SAID.reduce(
    (text, [what, instead]) =>
      instead === ''
        ? text.replace(what, (_, day) => daysBack(Number(day) <= 7 ? 9 - Number(day) : 5))
        : text.replace(what, instead),
    block,
  );

/** The blocks of a page that are commands. */
const commandsOf = (page: string): string[] =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    .filter(([, language, block]) => ['', 'bash', 'sh'].includes(language) && !NO_COMMANDS.test(block))
    .map(([, , block]) => block);

const WITH_COMMANDS = PAGES.filter((page) => commandsOf(page).length > 0);

it.each(WITH_COMMANDS)('each command of %s works as it stands there', (page) => {
  const at = join(folder, page.replaceAll('/', '-'));
  cpSync(template, at, { recursive: true });
  cpSync(join(ROOT, 'examples'), join(at, 'examples'), { recursive: true });
  const blocks = commandsOf(page).map(said);
  // What a comment of a recipe adds to the configuration.
  const keys = blocks.flatMap((block) => [...block.matchAll(/^# {2,}(.*)$/gm)].map(([, line]) => line));
  if (keys.length > 0) {
    const path = join(at, 'dfinery.json');
    const added = JSON.parse(`{${keys.join('\n').replace(/,\s*$/, '')}}`);
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...added }));
  }
  // Each block is pasted into a new terminal; a service runs on in its own.
  const isOver = (block: string) => !block.includes('simulate >');
  const script = blocks.map((block) => (isOver(block) ? `(${block})` : block)).join('\n');
  expect(run(at, `${ASSUMED[page] ?? ''}\n${script}`)).toBe('');
});
