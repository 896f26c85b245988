import { secretFrom } from '../../base/env.ts';
import { configFailure, EXIT, type ExitCode } from '../../base/errors.ts';
import { Secret } from '../../base/secrets.ts';
import { proveErasure } from '../../deletion/ledger/proof.ts';
import { verifyLedger } from '../../deletion/ledger/verify.ts';
import { flag, type Options, text } from '../command.ts';
import type { Context } from '../context.ts';

function ledgerKey({ env, redactor }: Context): Secret | undefined {
  const found = secretFrom(env, 'DFINERY_LEDGER_KEY');
  const key = found === undefined ? undefined : new Secret(found);
  redactor.add(key);
  return key;
}

/** `--verify-ledger FILE [--head H]`: exit 1 for a ledger that was edited or cut. */
export async function tellLedger(path: string, options: Options, context: Context): Promise<ExitCode> {
  const verdict = await verifyLedger(path, ledgerKey(context), text(options, 'head'));
  if (flag(options, 'json')) context.terminal.result(JSON.stringify(verdict));
  else {
    for (const { file, lines, closed } of verdict.files) {
      context.terminal.result(`${file}: ${lines} lines, ${closed ? 'closed' : 'not closed'}`);
    }
    for (const problem of [...verdict.problems, ...verdict.notes]) context.terminal.result(problem);
    context.terminal.result(verdict.ok ? `The ledger is whole. Head: ${verdict.head}` : 'The ledger is broken.');
  }
  return verdict.ok ? EXIT.done : EXIT.defect;
}

/** `--proof ID --ledger-dir DIR`: when, and with what answer, that id was erased. */
export async function tellProof(id: string, options: Options, context: Context): Promise<ExitCode> {
  const folder = text(options, 'ledgerDir');
  if (folder === undefined) throw configFailure('--proof wants --ledger-dir DIR.');
  const proof = await proveErasure(id, folder, ledgerKey(context));
  if (flag(options, 'json')) context.terminal.result(JSON.stringify(proof));
  else {
    for (const { at, outcome, code, status, file } of proof.answers) {
      context.terminal.result(`${at}  ${outcome}  code ${code}  HTTP ${status ?? '-'}  ${file}`);
    }
    for (const problem of proof.problems) context.terminal.result(problem);
    context.terminal.result(proof.erased ? 'This id was erased.' : 'The ledger proves no erasure of this id.');
  }
  return proof.problems.length > 0 || !proof.erased ? EXIT.defect : EXIT.done;
}
