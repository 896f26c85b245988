import { EXIT, messageOf } from '../../base/errors.ts';
import type { Io } from '../context.ts';
import { holdResults } from '../terminal.ts';
import { EMPTY_SUMMARY, writeXcom } from './summary.ts';

/**
 * Tells why a command line was refused before its command could run. A `sync` that was to give its summary to a script
 * (`--json`, `--xcom`) gives it one of this refusal: read from the words themselves, since they could not be parsed.
 */
export async function printRefusal(argv: readonly string[], reason: string, io: Io): Promise<void> {
  const { terminal, release } = holdResults(io.terminal, io.clock);
  for (const line of [...reason.split('\n'), 'See dfinery-elt --help.']) terminal.note(line);
  if (argv[0] === 'sync') {
    const summary = { ...EMPTY_SUMMARY, exit: EXIT.usage, error: reason.replaceAll(/\s*\n\s*/g, ' ') };
    const xcom = optionValue(argv, '--xcom');
    try {
      if (xcom !== undefined) writeXcom(xcom, summary);
    } catch (error) {
      terminal.note(messageOf(error));
    }
    const isStdoutData = argv.includes('-');
    if (argv.includes('--json')) terminal.result(JSON.stringify(summary), isStdoutData ? 'stderr' : undefined);
  }
  await release();
}

/** `--name VALUE` or `--name=VALUE`; undefined where it is missing or empty. */
function optionValue(argv: readonly string[], name: string): string | undefined {
  const at = argv.findIndex((word) => word === name || word.startsWith(`${name}=`));
  if (at === -1) return undefined;
  const value = argv[at] === name ? argv[at + 1] : argv[at].slice(name.length + 1);
  return value === '' || value?.startsWith('--') ? undefined : value;
}
