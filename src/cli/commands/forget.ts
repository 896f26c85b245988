import { configError, EXIT } from '../../base/errors.ts';
import { formatCount } from '../../base/quantities.ts';
import { type ErasureResult, runErasure } from '../../erasure/erasure.ts';
import { reportLines } from '../../erasure/erasure-report.ts';
import { verifyLedger } from '../../erasure/ledger/chain.ts';
import { locateLedger } from '../../erasure/ledger/ledger-file.ts';
import { exitOfProof, proveErasure } from '../../erasure/ledger/proof.ts';
import { proofLines, summarySentences } from '../../erasure/ledger/proof-text.ts';
import { IdList } from '../../erasure/list/id-list.ts';
import type { SearchSettings } from '../../erasure/listed-people.ts';
import { SuppressionList } from '../../erasure/suppression-list.ts';
import { PRIVATE_FILE_MODE } from '../../fs/permissions.ts';
import { DeletionClient } from '../../service/deletion-client.ts';
import {
  type CommandResult,
  defineCommand,
  flagOption,
  type GLOBAL_OPTIONS,
  numberOption,
  type OptionValues,
  optionName,
  pathOption,
  textOption,
  underHeading,
} from '../command.ts';
import { type CommandConfig, readConfiguration, requireKeys } from '../configuration.ts';
import type { Context } from '../context.ts';
import { failureOf } from '../failure.ts';
import { PEOPLE_OPTIONS, readIdList, WHERE_HEADING, WHOM_HEADING, withPeopleSearch } from '../people-options.ts';
import { writePage } from '../report/page.ts';
import { proofPage } from '../report/proof-page.ts';
import { withElapsedTime } from '../terminal/progress.ts';

const HEAD_OPTION = textOption('The head that a run printed: shows also whether lines are missing at the end');

/** The options of every purge. */
const PURGE_OPTIONS = {
  ...underHeading(WHERE_HEADING, {
    in: PEOPLE_OPTIONS.in,
    purgeOnly: flagOption('Send no request to the service: purge the places alone'),
    maxPeople: numberOption('Most people that all places may lose; default three for each ID, ten at least'),
    allowShared: flagOption('Purge people whose rows or profile also carry other IDs'),
  }),
  ...underHeading('Plan and execution', {
    execute: flagOption('Delete; needs --confirm'),
    confirm: textOption('The hash that the plan of exactly this list printed'),
    reason: textOption('Why; it is written to the ledger'),
  }),
};
const LIST_OPTIONS = {
  ...PEOPLE_OPTIONS,
  ...underHeading(WHOM_HEADING, {
    again: flagOption('Look for and request also those whom the ledger knows as deleted, or perhaps deleted'),
  }),
  ...PURGE_OPTIONS,
};
const SUPPRESSED_OPTIONS = {
  ...underHeading(WHOM_HEADING, {
    suppressed: flagOption('Purge everybody on the suppression list, for a restored backup'),
    newList: flagOption('With --suppressed: begin a new suppression list, since the old one is lost'),
  }),
  ...PURGE_OPTIONS,
};
const PROOF_OPTIONS = {
  column: PEOPLE_OPTIONS.column,
  ...underHeading('Proof', {
    proof: textOption('An external ID: when the service deleted it, and how many rows left which place'),
    proofFile: pathOption('The same for each ID of a list, with --column as for --file'),
    output: { ...pathOption('Of a proof: a page to sign, one file of HTML; - for stdout'), short: 'o' },
    head: HEAD_OPTION,
  }),
};
const LEDGER_OPTIONS = underHeading('Proof', {
  verifyLedger: pathOption('A ledger: was anything in it changed?'),
  head: HEAD_OPTION,
});
const OPTIONS = { ...LIST_OPTIONS, ...SUPPRESSED_OPTIONS, ...PROOF_OPTIONS, ...LEDGER_OPTIONS };

type ForgetValues = OptionValues<typeof OPTIONS & typeof GLOBAL_OPTIONS>;

export const command = defineCommand({
  options: OPTIONS,
  examples: [
    'forget --file people.csv --column member',
    'forget --file people.csv --column member --execute --confirm HASH',
  ],
  docsPage: 'erasure.md',
  async run(values, context) {
    return await taskOf(values).run(values, context);
  },
});

/** What the command does if one of `startedBy` is given, and the options that go with it. */
const TASKS = [
  { startedBy: ['id', 'file'], options: LIST_OPTIONS, run: erase },
  { startedBy: ['suppressed'], options: SUPPRESSED_OPTIONS, run: erase },
  { startedBy: ['proof', 'proofFile'], options: PROOF_OPTIONS, run: prove },
  { startedBy: ['verifyLedger'], options: LEDGER_OPTIONS, run: verifyLedgerFile },
];

/** The task of these options. Throws unless exactly one starts a task, and all others go with it. */
function taskOf(values: ForgetValues) {
  const givenKeys = Object.entries(values).flatMap(([key, value]) => (isGiven(value) && key in OPTIONS ? [key] : []));
  const startKeys = TASKS.flatMap(({ startedBy }) => startedBy);
  const [startKey, otherStartKey] = givenKeys.filter((key) => startKeys.includes(key));
  const task = TASKS.find(({ startedBy }) => startedBy.includes(startKey));
  if (task === undefined || otherStartKey !== undefined)
    throw configError(`It takes exactly one of ${startKeys.map(optionName).join(', ')}.`);
  const misplacedKey = givenKeys.find((key) => !Object.hasOwn(task.options, key));
  if (misplacedKey !== undefined)
    throw configError(`${optionName(misplacedKey)} does not go with ${optionName(startKey)}.`);
  return task;
}

const isGiven = (value: unknown): boolean =>
  value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);

/** Plans an erasure, or with `--execute --confirm HASH` carries it out. */
async function erase(values: ForgetValues, context: Context): Promise<CommandResult> {
  const { clock, signal, env } = context;
  const { execute, confirm, suppressed, purgeOnly, again, reason } = values;
  if (execute !== (confirm !== undefined))
    throw configError('--execute and --confirm HASH go together: run without both first, and look at the plan.');
  const isPurgeOnly = purgeOnly || suppressed;
  const config = requireKeys(readConfiguration(values.config, context), 'base_url', 'service_id');
  const importToken = isPurgeOnly ? undefined : requireKeys(config, 'import_token').importToken;
  return await withPeopleSearch(values, config, context, async (search) => {
    const purgeSettings = purgeSettingsOf(values, search, config);
    if (purgeSettings === undefined && isPurgeOnly)
      throw configError('A purge needs --in TARGET PLACE, or erasure.places.');
    const list = suppressed ? new IdList() : await readIdList(values, signal, config.requestedAtField);
    const deleter = importToken && new DeletionClient({ ...config, importToken, clock, env });
    try {
      const activity = confirm === undefined ? 'Planning the erasure' : 'Erasing';
      const erasure = runErasure({
        settings: { ...config, onRejected: 'continue', reason },
        runtime: context,
        list,
        consent: confirm === undefined ? 'none' : { confirm },
        requestSettings: deleter && { ...config, deleter, again },
        purgeSettings,
        isOnPlatform: false,
      });
      return commandResultOf(await withElapsedTime(activity, erasure, context), context);
    } finally {
      await deleter?.close();
    }
  });
}

/** How the places are purged; undefined for an erasure without places. */
function purgeSettingsOf(values: ForgetValues, search: SearchSettings, config: CommandConfig) {
  if (search.places.length === 0) return undefined;
  const { suppressed: isSuppressedOnly, newList: beginsNewList, maxPeople, allowShared: allowsShared } = values;
  const suppressionList = SuppressionList.of(requireKeys(config, 'suppression_key'));
  if (suppressionList === undefined || config.ledgerDir === undefined) {
    throw configError(
      'An erasure with places needs a suppression list, so that people stay away, and a ledger, which proves that they ' +
        'left: set erasure.ledger_dir (DFINERY_LEDGER_DIR).',
    );
  }
  return { ...search, suppressionList, isSuppressedOnly, beginsNewList, maxPeople, allowsShared };
}

function commandResultOf({ report, failure: error }: ErasureResult, context: Context): CommandResult {
  const { logger } = context;
  for (const warning of report.warnings) logger.warn('forget.plan', warning);
  const isPlan = report.mode === 'plan';
  const lines = [...reportLines(report), ...(isPlan ? [`hash: ${report.hash}`] : [])];
  const result = { ...report, exit: EXIT.done, error: null };
  if (error !== undefined) return { result, lines, failure: failureOf(error, context) };
  if (isPlan) {
    const nextStep = `repeat the command with --execute --confirm ${report.hash}`;
    logger.warn('forget.confirm', `Nothing was deleted. To do exactly this, ${nextStep}`);
  }
  return { result, lines };
}

/** `--verify-ledger FILE [--head H]`: exit 1 for a ledger that was edited or cut. */
async function verifyLedgerFile(values: ForgetValues, context: Context): Promise<CommandResult> {
  const { verifyLedger: path = '', head } = values;
  const { ledgerKey } = readConfiguration(values.config, context);
  const verdict = await verifyLedger(locateLedger(path, ledgerKey), head);
  const lines = [
    `${verdict.file}: ${formatCount(verdict.lines, 'line')}`,
    ...verdict.problems,
    ...(verdict.torn_bytes > 0
      ? ['The last line is not whole yet, or a crash has cut it: then the next run removes the rest of it.']
      : []),
    verdict.ok ? `The ledger is whole. Its head is ${verdict.head}` : 'The ledger is broken.',
  ];
  return { result: verdict, lines, exitCode: verdict.ok ? EXIT.done : EXIT.failed };
}

/** `--proof ID`, `--proof-file F`: exit 1 if the ledger is broken, or says nothing of an ID. */
async function prove(values: ForgetValues, context: Context): Promise<CommandResult> {
  const { proof: id, proofFile, column, head, output } = values;
  const config = requireKeys(readConfiguration(values.config, context), 'base_url', 'service_id');
  const list = await readIdList({ id, file: proofFile, column }, context.signal);
  const proof = await proveErasure(list, config, head);
  const exitCode = exitOfProof(proof);
  const isList = id === undefined;
  if (output === undefined) return { result: proof, lines: proofLines(proof, isList), exitCode };
  if (proof.problems.length > 0)
    throw configError(`${proof.problems[0]} A broken ledger proves nothing.`, { exitCode: EXIT.failed });
  const page = proofPage(proof, { now: context.clock.now(), isList });
  await writePage(page, output, 'the page', context.terminal, PRIVATE_FILE_MODE);
  if (output === '-') return { result: proof, lines: [], exitCode };
  return {
    result: { ...proof, output },
    lines: [...summarySentences(proof), `The page to sign is in ${output}.`],
    exitCode,
  };
}
