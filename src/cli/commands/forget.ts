import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { configError, EXIT, type ExitCode, type UserError } from '../../base/errors.ts';
import { count } from '../../base/quantities.ts';
import type { Secret } from '../../base/secrets.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { refuseUnknownNames } from '../../config/environment.ts';
import { type CaseResult, runDeletionCase } from '../../deletion/case.ts';
import { idsFrom, idsFromFile, type ListOptions } from '../../deletion/input/id-list.ts';
import type { LedgerOutput } from '../../deletion/ledger/ledger.ts';
import { type Proof, proveErasure, verifyLedger } from '../../deletion/ledger/verify.ts';
import { type PurgePlace, type PurgeRequest, placeName } from '../../deletion/purge.ts';
import { reportTable } from '../../deletion/report.ts';
import { readJsonFile } from '../../fs/json-file.ts';
import { HashKey } from '../../schema/hash-key.ts';
import { createDeletionService } from '../../service/delete/client.ts';
import { queryDuckDb } from '../../sinks/duckdb/query.ts';
import { STATEFUL_TARGETS } from '../../sinks/targets.ts';
import { checkSuppression } from '../../suppression/list.ts';
import {
  type Command,
  flag,
  lockWait,
  maintenanceOptions,
  type Options,
  placeOptions,
  printResult,
  refuseEmpty,
  shownOption,
  text,
} from '../command.ts';
import {
  DESTINATION_FILE,
  destinationEnvironmentHelp,
  findDestinationConfig,
  loadDestinationConfig,
  SOURCE_FILE,
} from '../configuration.ts';
import { type Context, secretOf } from '../context.ts';
import { failureLine, outcomeOf } from '../outcome.ts';

/** The options that name people, and how they are found in what was loaded. */
export const LIST_OPTIONS = {
  id: { type: 'string', describe: 'An external ID' },
  file: { type: 'string', describe: 'CSV, JSON Lines, or one ID a line; - for standard input' },
  column: { type: 'string', describe: 'Name of the column with the external IDs' },
} as const;
export const MAPPING_OPTION = {
  type: 'string',
  describe: 'File with the columns external_id and df_unified_id',
} as const;

/** Options that a purge alone has, as the parser calls them. */
const PURGE_OPTIONS = [
  'purgeColumn',
  'mapping',
  'purgeOnly',
  'maxPeople',
  'allowShared',
  'forgetCopy',
  'suppressionFile',
];

export const forget: Command = {
  refusesUnknownNames: true,
  options: (yargs) =>
    maintenanceOptions(yargs)
      .options({
        ...LIST_OPTIONS,
        query: { type: 'string', describe: 'SQL that gives one column of external IDs, put read-only to --duckdb' },
        duckdb: { type: 'string', describe: 'The file for --query' },
        config: { type: 'string', describe: 'Destination configuration (JSON); default dfinery-destination.json' },
        execute: { type: 'boolean', default: false, describe: 'Delete; needs --confirm' },
        confirm: { type: 'string', describe: 'The hash that the plan of exactly this list and purge printed' },
        purge: {
          type: 'string',
          nargs: 2,
          describe: `${purgePlaces()}: the people leave it too; may be given several times`,
        },
        'purge-column': { type: 'string', describe: 'Column there that holds the external ID' },
        mapping: MAPPING_OPTION,
        'purge-only': {
          type: 'boolean',
          default: false,
          describe: 'Purge without any request to the service: for a further place or key, or a restored backup',
        },
        'max-people': {
          type: 'string',
          describe: 'Most people that a place may lose; default three for each ID, ten at least',
        },
        'allow-shared': {
          type: 'boolean',
          default: false,
          describe: 'Purge people whose rows also carry other IDs in the column',
        },
        'forget-copy': {
          type: 'string',
          nargs: 1,
          describe: 'A copy for readers that is gone for good: it is taken off the list of the purged DuckDB file',
        },
        'suppression-file': {
          type: 'string',
          describe: 'List that keeps the people out of later syncs; key in DFINERY_SUPPRESSION_KEY',
        },
        'verify-ledger': { type: 'string', describe: 'A ledger file or folder: finds any edit' },
        head: {
          type: 'string',
          describe: 'Hash of the last line, as a run printed it: shows whether lines are missing at the end, too',
        },
        proof: { type: 'string', describe: 'An external ID: when and with what answer it was erased' },
        'ledger-dir': { type: 'string', describe: 'The ledger for --proof' },
      })
      .epilogue(destinationEnvironmentHelp()),
  async run(options, context) {
    let failure: UserError | undefined;
    try {
      refuseUnknownNames(context.env);
      refuseEmpty(options);
      lockWait(options);
      const ledger = text(options, 'verifyLedger');
      if (ledger !== undefined) return await printLedgerVerdict(ledger, options, context);
      const proof = text(options, 'proof');
      if (proof !== undefined) return await printProof(proof, options, context);
      failure = await forgetPeople(options, context);
    } catch (error) {
      printFailure(error, options, context);
      throw error;
    }
    // What was printed has it.
    if (failure !== undefined) throw failure;
    return EXIT.done;
  },
};

/** Whoever asked for JSON gets it, also where there is no report. */
export function printFailure(error: unknown, options: Options, { terminal, signal, redactor }: Context): void {
  if (!flag(options, 'json')) return;
  const { exit, message } = outcomeOf(error, signal);
  terminal.result(failureLine(exit, redactor.mask(message)));
}

/**
 * Plans a deletion, or with `--execute --confirm HASH` carries it out and purges what was loaded. Prints the report, and returns
 * the failure that is in it.
 */
async function forgetPeople(options: Options, context: Context): Promise<UserError | undefined> {
  const { clock, random, logger, signal, env } = context;
  const confirm = text(options, 'confirm');
  if (flag(options, 'execute') && confirm === undefined) {
    throw configError(
      '--execute needs --confirm HASH: run without --execute first, look at the plan, and repeat its hash.',
    );
  }
  const config = loadDestinationConfig(text(options, 'config'), context);
  const purge = purgeRequest(options, context);
  const ids = idsOf(options, { header: config.externalIdField }, context);
  const deleter = createDeletionService({ ...config, clock, logger, env });
  try {
    const result = await runDeletionCase({
      config,
      io: { clock, random, logger, signal, lines: logLines(context) },
      consent: flag(options, 'execute') && confirm !== undefined ? { confirm } : undefined,
      deleter,
      purge,
      async read(into) {
        for await (const id of ids) {
          signal.throwIfAborted();
          into.addRow(0, id, config.maxIdLength);
        }
      },
    });
    printReport(result, options, context);
    const isPurged = result.report.places.some((place) => place.rows_removed);
    if (isPurged && purge?.suppression === undefined) {
      logger.warn(
        'purge.unsuppressed',
        'Without --suppression-file the next sync may bring the rows back while the service still exports them.',
      );
    }
    return result.failure;
  } finally {
    await deleter.close();
  }
}

function printReport({ report, hash, failure }: CaseResult, options: Options, context: Context): void {
  const { logger, redactor } = context;
  const isPlan = report.mode === 'dry_run';
  const error = failure === undefined ? null : redactor.mask(failure.message);
  const lines = [
    ...reportTable(report).split('\n'),
    ...(report.head === null ? [] : [`ledger head: ${report.head}`]),
    ...(isPlan ? [`hash: ${hash}`] : []),
  ];
  printResult({ ...report, hash, exit: failure?.exitCode ?? EXIT.done, error }, lines, options, context);
  if (!isPlan || failure !== undefined) return;
  if (report.guard !== null) logger.warn('forget.guard', report.guard);
  logger.warn('forget.plan', `Nothing was deleted. To delete exactly this list: --execute --confirm ${hash}`);
}

/** The ids that the command line names in one of the `ways` that the command has; each exactly as it stands there. */
export function idsOf(
  options: Options,
  list: ListOptions,
  context: Context,
  ways = '--id, --file and --query',
): AsyncIterable<unknown> {
  const [id, file, query] = [options.id, text(options, 'file'), text(options, 'query')];
  const given = [id, file, query].filter((value) => value !== undefined).length;
  if (given !== 1) throw configError(`It takes exactly one of ${ways}.`);
  if (file === undefined && text(options, 'column') !== undefined) throw configError('--column needs --file.');
  if (file !== undefined) {
    const of = { ...list, column: text(options, 'column') };
    return file === '-' ? idsFrom(process.stdin, 'standard input', of) : idsFromFile(file, of);
  }
  if (query !== undefined) return fromQuery(query, text(options, 'duckdb'), options, context);
  return fromList([options.id].flat());
}

async function* fromList(ids: readonly unknown[]): AsyncGenerator<unknown> {
  yield* ids;
}

async function* fromQuery(
  query: string,
  file: string | undefined,
  options: Options,
  { clock, signal }: Context,
): AsyncGenerator<unknown> {
  if (file === undefined) throw configError('--query needs --duckdb FILE, the file to run it on.');
  const [result] = await queryDuckDb({ file, lockWaitMs: lockWait(options), clock, signal }, [query]);
  if (result.header.length > 1) {
    throw configError(`The query gives ${result.header.length} columns, expected one with the external IDs.`);
  }
  if (result.types[0] === 'JSON') {
    throw configError(
      'The query gives JSON, in which a text has quotes around it that are no part of the ID: say ->> instead of ->.',
    );
  }
  for (const [id] of result.values) {
    if (id !== null && typeof id !== 'string') {
      throw configError(
        'The query gives values that are no text: an ID is a text, so say CAST(… AS VARCHAR) if it is meant.',
      );
    }
    yield id;
  }
}

/** `duckdb FILE, parquet DIR or delta URL`, each in these quotes. */
function purgePlaces(quote = ''): string {
  const places = STATEFUL_TARGETS.map(({ name, place }) => `${quote}${name} ${place.name.toUpperCase()}${quote}`);
  return places.join(' or ');
}

/** The places of an option that takes a target and a place, any number of times. */
export function placesOf(name: string, value: unknown): PurgePlace[] {
  const words = Array.isArray(value) ? value.map(String) : [];
  const places: PurgePlace[] = [];
  for (let at = 0; at < words.length; at += 2) {
    const target = STATEFUL_TARGETS.find((one) => one.name === words[at]);
    const path = words[at + 1];
    if (target === undefined || path === undefined) throw configError(`--${name} needs ${purgePlaces('"')}.`);
    if (places.some((place) => placeName(place) === placeName({ target, path }))) {
      throw configError(`--${name} names ${target.name} ${path} twice: a link and what it leads to are one place.`);
    }
    places.push({ target, path });
  }
  return places;
}

/** Reads `--purge KIND PATH` and what belongs to it; undefined when nothing is to be purged. */
function purgeRequest(options: Options, context: Context): PurgeRequest | undefined {
  const places = placesOf('purge', options.purge);
  if (places.length === 0) {
    const without = PURGE_OPTIONS.find((name) => options[name] !== undefined && options[name] !== false);
    if (without === undefined) return undefined;
    throw configError(`${shownOption(without)} needs --purge: people are looked up in what was loaded.`);
  }
  const [column, mapping] = [text(options, 'purgeColumn'), text(options, 'mapping')];
  if ((column === undefined) === (mapping === undefined)) {
    throw configError('--purge needs exactly one of --purge-column and --mapping, to find the people there.');
  }
  const spoolDirs = spoolDirsOf(options, context);
  const forgetCopies = [options.forgetCopy ?? []].flat().map(String);
  const there = forgetCopies.find((copy) => existsSync(copy));
  if (there !== undefined) {
    throw configError(
      `--forget-copy ${there} is still there: remove it first, since it may hold people who were purged.`,
    );
  }
  if (forgetCopies.length > 0 && places.filter(({ target }) => target.publishes).length !== 1) {
    throw configError('--forget-copy needs exactly one --purge duckdb FILE: the file that the copy is of.');
  }
  return {
    places,
    column,
    mapping,
    hashKey: hashKeyFrom(context),
    suppression: suppressionOf(options, context),
    spoolDirs,
    options: { ...placeOptions(options, context), spoolDir: spoolDirs[0] },
    isOnly: flag(options, 'purgeOnly'),
    maxPeople: maxPeopleOf(text(options, 'maxPeople')),
    allowsShared: flag(options, 'allowShared'),
    forgetCopies,
  };
}

function maxPeopleOf(given: string | undefined): number | undefined {
  if (given === undefined || /^\d{1,9}$/.test(given)) return given === undefined ? undefined : Number(given);
  throw configError(`--max-people is ${JSON.stringify(given)}, wanted a whole number.`);
}

function suppressionOf(options: Options, context: Context): PurgeRequest['suppression'] {
  const file = text(options, 'suppressionFile');
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

export function hashKeyFrom(context: Context): HashKey | undefined {
  const key = secretOf('DFINERY_HASH_KEY', context);
  return key && new HashKey(key);
}

/** Every folder that is named for downloads, the one of this command first (S37). */
function spoolDirsOf(options: Options, { env }: Context): readonly string[] {
  const named = [
    text(options, 'spoolDir'),
    env('DFINERY_SPOOL_DIR'),
    spoolDirIn(text(options, 'config') ?? DESTINATION_FILE),
    spoolDirIn(SOURCE_FILE),
    tmpdir(),
  ];
  return [...new Set(named.flatMap((dir) => (dir === undefined || dir === '' ? [] : [resolve(dir)])))];
}

function spoolDirIn(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  const config = readJsonFile(file, 'the configuration file');
  const dir = typeof config === 'object' && config !== null && 'spool_dir' in config ? config.spool_dir : undefined;
  return typeof dir === 'string' ? dir : undefined;
}

/** Without a folder the ledger's lines are written to stderr at any log level; a line that cannot be written is a failure. */
function logLines({ terminal }: Context): LedgerOutput {
  return {
    async write(lines) {
      await terminal.record(lines.join('\n'));
    },
    async close() {},
  };
}

/** `--verify-ledger FILE [--head H]`: exit 1 for a ledger that was edited or cut. */
async function printLedgerVerdict(path: string, options: Options, context: Context): Promise<ExitCode> {
  const config = findDestinationConfig(text(options, 'config'), context);
  const verdict = await verifyLedger(path, ledgerKeyOf(config, context), { head: text(options, 'head') });
  const lines = [
    ...verdict.files.map(
      ({ file, lines, closed }) => `${file}: ${count(lines, 'line')}, ${closed ? 'closed' : 'not closed'}`,
    ),
    ...verdict.problems,
    ...verdict.notes,
    verdict.ok ? `The ledger is whole. Head: ${verdict.head}` : 'The ledger is broken.',
  ];
  printResult(verdict, lines, options, context);
  return verdict.ok ? EXIT.done : EXIT.failed;
}

const ledgerKeyOf = (config: DestinationConfig | undefined, context: Context): Secret | undefined =>
  config?.ledgerKey ?? secretOf('DFINERY_LEDGER_KEY', context);

/** `--proof ID --ledger-dir DIR`: when, and with what answer, that id was erased at the configured service, and purged where. */
async function printProof(id: string, options: Options, context: Context): Promise<ExitCode> {
  const service = findDestinationConfig(text(options, 'config'), context);
  const folder = text(options, 'ledgerDir') ?? service?.ledgerDir;
  if (folder === undefined) throw configError('--proof needs --ledger-dir DIR.');
  const query = { folder, key: ledgerKeyOf(service, context), service, head: text(options, 'head') };
  const proof = await proveErasure(id, query);
  printResult(proof, proofLines(proof), options, context);
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
        rows === undefined ? 'broke off' : `${count(rows, 'row')} of ${count(people, 'person', 'people')} removed`;
      const line = `${at}  purge ${outcome}  ${target}: ${removed}  ${file}`;
      return [line, ...unreached.map((missed) => `  not reached: ${missed}`)];
    }),
    ...problems,
    `${sentence}: service ${service_id ?? '-'} at ${base_url ?? '-'}.`,
  ];
}
