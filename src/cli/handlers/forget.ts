import { configFailure } from '../../base/errors.ts';
import { type Handler, type Options, shownOption, text } from '../command.ts';
import { printLedgerVerdict, printProof } from '../forget/ledger.ts';
import { forgetPeople } from '../forget/people.ts';

export const forget: Handler = async (options, context) => {
  refuseEmpty(options);
  const ledger = text(options, 'verifyLedger');
  if (ledger !== undefined) return printLedgerVerdict(ledger, options, context);
  const proof = text(options, 'proof');
  if (proof !== undefined) return printProof(proof, options, context);
  return forgetPeople(options, context);
};

/** An empty variable of a script must not quietly leave out a check, a list or a purge. */
function refuseEmpty(options: Options): void {
  for (const [name, value] of Object.entries(options)) {
    if (name.includes('-') || (Array.isArray(value) ? !value.includes('') : value !== '')) continue;
    throw configFailure(`${shownOption(name)} is empty.`);
  }
}
