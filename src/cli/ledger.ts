import { configError, EXIT, type ExitCode } from '../base/errors.ts';
import { count } from '../base/quantities.ts';
import type { Secret } from '../base/secrets.ts';
import type { DestinationConfig } from '../config/destination.ts';
import { type Proof, proveErasure, verifyLedger } from '../deletion/ledger/verify.ts';
import { printResult, text, type ValuesOf } from './command.ts';
import { findDestinationConfig } from './configuration.ts';
import { type Context, secretOf } from './context.ts';
import { isValidText } from './people.ts';

// The views of the ledger in `forget`: whether it is complete and unchanged, and what it proves about an id.

export const LEDGER_OPTIONS = {
  verifyLedger: text('A file or folder of a ledger: shows whether anything in it was changed'),
  head: text('Hash of the last line, as a run printed it: shows whether lines are missing at the end, too'),
  proof: text('An external ID: shows when, and with which answer, it was erased'),
  ledgerDir: text('Folder of the ledger for --proof'),
};

interface LedgerValues extends Pick<ValuesOf<typeof LEDGER_OPTIONS>, 'head' | 'ledgerDir'> {
  readonly config: string | undefined;
  readonly json: boolean;
}

/** `--verify-ledger FILE [--head H]`: exit 1 for a ledger that was edited or cut. */
export async function printLedgerVerdict(path: string, values: LedgerValues, context: Context): Promise<ExitCode> {
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

/** `--proof ID --ledger-dir DIR`: when, and with what answer, that id was erased at the configured service, and purged where. */
export async function printProof(id: string, values: LedgerValues, context: Context): Promise<ExitCode> {
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
        rows === undefined ? 'broke off' : `${count(rows, 'row')} of ${count(people, 'person', 'people')} removed`;
      const line = `${at}  purge ${outcome}  ${target}: ${removed}  ${file}`;
      return [line, ...unreached.map((missed) => `  not reached: ${missed}`)];
    }),
    ...problems,
    `${sentence}: service ${service_id ?? '-'} at ${base_url ?? '-'}.`,
  ];
}
