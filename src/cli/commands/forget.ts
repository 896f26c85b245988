import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { configError, EXIT, type ExitCode } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { count } from '../../base/quantities.ts';
import type { Secret } from '../../base/secrets.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { type CaseResult, runDeletionCase } from '../../erasure/case.ts';
import { type Proof, proveErasure, verifyLedger } from '../../erasure/ledger/verify.ts';
import type { PurgeRequest } from '../../erasure/purge.ts';
import { reportTable } from '../../erasure/report.ts';
import { checkSuppression } from '../../erasure/suppression/list.ts';
import { readJsonFile } from '../../fs/json-file.ts';
import { DeletionClient } from '../../service/delete/client.ts';
import type { Target } from '../../targets/contract.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import {
  defineCommand,
  flag,
  type GLOBAL_OPTIONS,
  optionName,
  places,
  placeWords,
  printResult,
  text,
  texts,
  type ValuesOf,
  whole,
} from '../command.ts';
import { CONFIG_FILE } from '../configuration.ts';
import { type Context, secretOf } from '../context.ts';
import {
  DESTINATION_FILE,
  findDestinationConfig,
  loadDestinationConfig,
  PLACE_OPTIONS,
  placeOptions,
} from '../destination.ts';
import { failureOf } from '../failure.ts';
import { hashKeyFrom, idsOf, isValidText, LIST_OPTIONS, MAPPING_OPTION, storedPlaces } from '../people.ts';

const PURGE_OPTIONS = {
  purgeColumn: text('Column of each place that holds the external ID'),
  mapping: MAPPING_OPTION,
  purgeOnly: flag('Purge without any request to the service: for a further place or key, or a restored backup'),
  maxPeople: whole('Most people that a place may lose; default three for each ID, ten at least'),
  allowShared: flag('Purge people whose rows also carry other IDs in the column'),
  forgetCopy: texts(
    'A copy for readers that is gone for good: it is taken off the list of the place that is purged; may be given several times',
  ),
  suppressionFile: text('List that keeps the people out of later syncs; key in DFINERY_SUPPRESSION_KEY'),
};

const LEDGER_OPTIONS = {
  verifyLedger: text('A file or folder of a ledger: shows whether anything in it was changed'),
  head: text('Hash of the last line, as a run printed it: shows whether lines are missing at the end, too'),
  proof: text('An external ID: shows when, and with which answer, it was erased'),
  ledgerDir: text('Folder of the ledger for --proof'),
};

const OPTIONS = {
  ...LIST_OPTIONS,
  query: text('SQL that gives one column of external IDs, put read-only to --duckdb'),
  duckdb: text('The file for --query'),
  execute: flag('Delete; needs --confirm'),
  confirm: text('The hash that the plan of exactly this list and purge printed'),
  purge: places(
    `${placeWords(STATEFUL_TARGETS)}: removes the people from what was loaded there; may be given several times`,
  ),
  ...PURGE_OPTIONS,
  ...LEDGER_OPTIONS,
  ...PLACE_OPTIONS,
};

type Values = ValuesOf<typeof OPTIONS & typeof GLOBAL_OPTIONS>;
type Name = keyof typeof OPTIONS;
const PEOPLE_OPTIONS = ['id', 'file', 'query'] as const satisfies Name[];
/** Each says what the command is to do: exactly one of these options must be given. */
const SUBJECTS = [...PEOPLE_OPTIONS, 'verifyLedger', 'proof'] as const satisfies Name[];

/** Options that are refused unless one of the options in `of` is given, with the reason. */
const COMPANIONS: readonly (readonly [keys: readonly string[], of: readonly Name[], why?: string])[] = [
  [['execute', 'purge'], PEOPLE_OPTIONS],
  [['confirm'], ['execute']],
  [['duckdb'], ['query']],
  [['column'], ['file']],
  [['head'], ['verifyLedger', 'proof']],
  [['ledgerDir'], ['proof'], 'a deletion writes to the ledger_dir of its configuration'],
  [Object.keys(PURGE_OPTIONS), ['purge'], 'people are looked up in what was loaded'],
];

export const command = defineCommand({
  options: OPTIONS,
  examples: ['forget --file ids.txt', 'forget --file ids.txt --execute --confirm HASH'],
  page: 'privacy.md',
  async run(values, context) {
    refuseIdleOptions(values);
    if (values.verifyLedger !== undefined) return printLedgerVerdict(values.verifyLedger, values, context);
    if (values.proof !== undefined) return printProof(values.proof, values, context);
    return forgetPeople(values, context);
  },
});

function refuseIdleOptions(values: Values): void {
  const given = new Set(Object.keys(OPTIONS).filter((key) => isGiven(values[key as Name])));
  const names = (keys: readonly Name[]) => keys.map((key) => optionName(key, OPTIONS[key])).join(' or ');
  if (SUBJECTS.filter((key) => given.has(key)).length !== 1) {
    throw configError(`It takes exactly one of ${names(SUBJECTS)}.`);
  }
  for (const [keys, of, why] of COMPANIONS) {
    const idle = keys.find((key) => given.has(key));
    if (idle === undefined || of.some((key) => given.has(key))) continue;
    throw configError(`${names([idle as Name])} needs ${names(of)}${why === undefined ? '' : `: ${why}`}.`);
  }
}

/**
 * Plans a deletion, or with `--execute --confirm HASH` carries it out and purges what was loaded. Prints the report.
 */
async function forgetPeople(values: Values, context: Context): Promise<ExitCode> {
  const { clock, random, logger, signal, env, terminal } = context;
  const { execute, confirm } = values;
  if (execute && confirm === undefined) {
    throw configError(
      '--execute needs --confirm HASH: run without --execute first, look at the plan, and repeat its hash.',
    );
  }
  const config = loadDestinationConfig(values.config, context);
  const purge = purgeRequest(values, context);
  const ids = idsOf(values, { header: config.externalIdField }, context);
  const { baseUrl, serviceId, importToken, maxConcurrentRequests } = config;
  const deleter = new DeletionClient({ baseUrl, serviceId, importToken, maxConcurrentRequests, clock, env });
  // Without a folder the ledger's lines go to stderr at any log level; a line that cannot be written is a failure.
  const lines = { write: (all: readonly string[]) => terminal.record(all.join('\n')), close: async () => {} };
  try {
    const result = await runDeletionCase({
      config,
      io: { clock, random, logger, signal, lines },
      consent: execute && confirm !== undefined ? { confirm } : undefined,
      deleter,
      purge,
      async read(into) {
        for await (const id of ids) {
          signal.throwIfAborted();
          into.addRow(0, id, config.maxIdLength);
        }
      },
    });
    printReport(result, values.json, context);
    const isPurged = result.report.places.some((place) => place.rows_removed);
    if (isPurged && purge?.suppression === undefined) {
      logger.warn(
        'purge.unsuppressed',
        'Without --suppression-file the next sync may bring the rows back while the service still exports them.',
      );
    }
    if (result.failure === undefined) return EXIT.done;
    // The report, which is printed already, contains the failure.
    const failure = failureOf(result.failure, signal);
    failure.log(logger);
    return failure.exit;
  } finally {
    await deleter.close();
  }
}

function printReport({ report, hash, failure }: CaseResult, json: boolean, context: Context): void {
  const { logger, redactor } = context;
  const isPlan = report.mode === 'dry_run';
  const error = failure === undefined ? null : redactor.mask(failure.message);
  const lines = reportTable(report).split('\n');
  if (report.head !== null) lines.push(`ledger head: ${report.head}`);
  if (isPlan) lines.push(`hash: ${hash}`);
  printResult({ ...report, hash, exit: failure?.exitCode ?? EXIT.done, error }, lines, json, context);
  if (!isPlan || failure !== undefined) return;
  if (report.guard !== null) logger.warn('forget.guard', report.guard);
  logger.warn('forget.plan', `Nothing was deleted. To delete exactly this list: --execute --confirm ${hash}`);
}

function purgeRequest(values: Values, context: Context): PurgeRequest | undefined {
  const places = storedPlaces('purge', values.purge);
  if (places.length === 0) return undefined;
  const { purgeColumn: column, mapping, forgetCopy: forgetCopies, duckdb } = values;
  if ((column === undefined) === (mapping === undefined)) {
    throw configError('--purge needs exactly one of --purge-column and --mapping, to find the people there.');
  }
  const spoolDirs = spoolDirsOf(values, context);
  const there = forgetCopies.find((copy) => existsSync(copy));
  if (there !== undefined) {
    throw configError(
      `--forget-copy ${there} is still there: remove it first, since it may hold people who were purged.`,
    );
  }
  if (forgetCopies.length > 0 && places.filter(({ target }) => publishes(target)).length !== 1) {
    const publishing = placeWords(STATEFUL_TARGETS.filter(publishes));
    throw configError(`--forget-copy needs --purge of exactly one ${publishing}: what the copy is of.`);
  }
  return {
    places,
    column,
    mapping,
    hashKey: hashKeyFrom(context),
    suppression: suppressionOf(values.suppressionFile, context),
    spoolDirs,
    options: { ...placeOptions(values, context), spoolDir: spoolDirs[0] },
    isPurgeOnly: values.purgeOnly,
    maxPeople: values.maxPeople,
    allowsShared: values.allowShared,
    forgetCopies,
    listFile: duckdb,
  };
}

const publishes = ({ options }: Target): boolean => options?.publish !== undefined;

const isGiven = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;

function suppressionOf(file: string | undefined, context: Context): PurgeRequest['suppression'] {
  if (file === undefined) return undefined;
  const key = secretOf('DFINERY_SUPPRESSION_KEY', context);
  if (key === undefined) {
    throw configError(
      '--suppression-file needs the key in DFINERY_SUPPRESSION_KEY (or the file that DFINERY_SUPPRESSION_KEY_FILE names).',
    );
  }
  checkSuppression(file, key);
  return { file, key };
}

/** All spool folders that options, environment and configurations name; the one of this command comes first. */
function spoolDirsOf({ spoolDir, config }: Values, { env }: Context): readonly string[] {
  const configured = [config ?? DESTINATION_FILE, CONFIG_FILE].map(spoolDirIn);
  const named = [spoolDir, env('DFINERY_SPOOL_DIR'), ...configured, tmpdir()];
  return [...new Set(named.flatMap((dir) => (dir ? [resolve(dir)] : [])))];
}

function spoolDirIn(file: string): string | undefined {
  const config = existsSync(file) ? readJsonFile(file, 'the configuration file') : undefined;
  return isObject(config) && typeof config.spool_dir === 'string' ? config.spool_dir : undefined;
}

/** `--verify-ledger FILE [--head H]`: exit 1 for a ledger that was edited or cut. */
async function printLedgerVerdict(path: string, values: Values, context: Context): Promise<ExitCode> {
  const config = findDestinationConfig(values.config, context);
  const verdict = await verifyLedger(path, ledgerKeyOf(config, context), { head: values.head });
  const lines = [
    ...verdict.files.map(
      ({ file, lines, closed }) => `${file}: ${count(lines, 'line')}, ${closed ? 'closed' : 'not closed'}`,
    ),
    ...verdict.problems,
    ...verdict.notes,
    verdict.ok ? `The ledger is whole. Head: ${verdict.head}` : 'The ledger is broken.',
  ];
  printResult(verdict, lines, values.json, context);
  return verdict.ok ? EXIT.done : EXIT.failed;
}

const ledgerKeyOf = (config: DestinationConfig | undefined, context: Context): Secret | undefined =>
  config?.ledgerKey ?? secretOf('DFINERY_LEDGER_KEY', context);

/**
 * `--proof ID --ledger-dir DIR`: when, and with what answer, that id was erased at the configured service, and purged
 * where.
 */
async function printProof(id: string, values: Values, context: Context): Promise<ExitCode> {
  if (!isValidText(id))
    throw configError('The ID of --proof is not valid UTF-8, or holds the character U+FFFD itself.');
  const service = findDestinationConfig(values.config, context);
  const folder = values.ledgerDir ?? service?.ledgerDir;
  if (folder === undefined) throw configError('--proof needs --ledger-dir DIR.');
  const query = { folder, key: ledgerKeyOf(service, context), service, head: values.head };
  const proof = await proveErasure(id, query);
  printResult(proof, proofLines(proof), values.json, context);
  return proof.problems.length > 0 || !proof.erased ? EXIT.failed : EXIT.done;
}

function proofLines({ answers, purges, problems, erased, service_id, base_url }: Proof): string[] {
  const verdict = erased ? 'This id was erased' : 'The ledger proves no erasure of this id';
  const sentence = problems.length > 0 ? 'The ledger is broken and proves nothing' : verdict;
  return [
    ...answers.map(
      ({ at, outcome, code, status, file }) => `${at}  ${outcome}  code ${code}  HTTP ${status ?? '-'}  ${file}`,
    ),
    ...purges.flatMap(({ at, target, outcome, counts: { rows, people = 0 }, unreached, file }) => {
      const removed =
        rows === undefined ? 'no result' : `${count(rows, 'row')} of ${count(people, 'person', 'people')} removed`;
      const line = `${at}  purge ${outcome}  ${target}: ${removed}  ${file}`;
      return [line, ...unreached.map((missed) => `  not reached: ${missed}`)];
    }),
    ...problems,
    `${sentence}: service ${service_id ?? '-'} at ${base_url ?? '-'}.`,
  ];
}
