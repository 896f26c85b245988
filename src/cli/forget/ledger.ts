import { secretFrom } from '../../base/env.ts';
import { configFailure, EXIT, type ExitCode } from '../../base/errors.ts';
import { count } from '../../base/quantities.ts';
import { Secret } from '../../base/secrets.ts';
import { type Proof, proveErasure } from '../../deletion/ledger/proof.ts';
import { verifyLedger } from '../../deletion/ledger/verify.ts';
import { flag, type Options, text } from '../command.ts';
import { findDestinationConfig } from '../configuration.ts';
import type { Context } from '../context.ts';

function ledgerKey({ env, redactor }: Context): Secret | undefined {
  const found = secretFrom(env, 'DFINERY_LEDGER_KEY');
  const key = found === undefined ? undefined : new Secret(found);
  redactor.add(key);
  return key;
}

/** `--verify-ledger FILE [--head H]`: exit 1 for a ledger that was edited or cut. */
export async function printLedgerVerdict(path: string, options: Options, context: Context): Promise<ExitCode> {
  const config = findDestinationConfig(text(options, 'config'), context);
  const verdict = await verifyLedger(path, config?.ledgerKey ?? ledgerKey(context), { head: text(options, 'head') });
  if (flag(options, 'json')) context.terminal.result(JSON.stringify(verdict));
  else {
    for (const { file, lines, closed } of verdict.files) {
      context.terminal.result(`${file}: ${count(lines, 'line')}, ${closed ? 'closed' : 'not closed'}`);
    }
    for (const problem of [...verdict.problems, ...verdict.notes]) context.terminal.result(problem);
    context.terminal.result(verdict.ok ? `The ledger is whole. Head: ${verdict.head}` : 'The ledger is broken.');
  }
  return verdict.ok ? EXIT.done : EXIT.failed;
}

/** `--proof ID --ledger-dir DIR`: when, and with what answer, that id was erased at the configured service. */
export async function printProof(id: string, options: Options, context: Context): Promise<ExitCode> {
  const service = findDestinationConfig(text(options, 'config'), context);
  const folder = text(options, 'ledgerDir') ?? service?.ledgerDir;
  if (folder === undefined) throw configFailure('--proof needs --ledger-dir DIR.');
  const proof = await proveErasure(id, { folder, key: service?.ledgerKey ?? ledgerKey(context), service });
  if (flag(options, 'json')) context.terminal.result(JSON.stringify(proof));
  else {
    for (const { at, outcome, code, status, file } of proof.answers) {
      context.terminal.result(`${at}  ${outcome}  code ${code}  HTTP ${status ?? '-'}  ${file}`);
    }
    for (const problem of proof.problems) context.terminal.result(problem);
    context.terminal.result(`${sentenceOf(proof)}: service ${proof.service_id ?? '-'} at ${proof.base_url ?? '-'}.`);
  }
  return proof.problems.length > 0 || !proof.erased ? EXIT.failed : EXIT.done;
}

const sentenceOf = ({ erased, problems }: Proof): string => {
  if (problems.length > 0) return 'The ledger is broken and proves nothing';
  return erased ? 'This id was erased' : 'The ledger proves no erasure of this id';
};
