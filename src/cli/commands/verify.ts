import { EXIT, type ExitCode } from '../../base/errors.ts';
import { verifyDuckDb } from '../../sinks/duckdb/verify.ts';
import { verifyParquet } from '../../sinks/parquet/verify.ts';
import { type Command, flag, type Options, text } from '../command.ts';
import type { Context } from '../context.ts';
import { lockWait, maintenanceOptions } from './maintenance.ts';

interface Difference {
  readonly check: string;
  readonly message: string;
}

/** Prints what differs, or that nothing does. */
export function tellDifferences(
  found: readonly Difference[],
  target: string,
  options: Options,
  context: Context,
): ExitCode {
  const { terminal } = context;
  if (flag(options, 'json')) terminal.result(JSON.stringify({ v: 1, target, differences: found }));
  else if (found.length === 0) terminal.result(`${target} agrees with its receipts.`);
  else for (const { check, message } of found) terminal.result(`${check}: ${message}`);
  return found.length === 0 ? EXIT.done : EXIT.defect;
}

export const verifyDuckDbFile: Command = {
  usage: 'verify duckdb <file>',
  summary: 'The rows of a DuckDB file against its receipts; exit 1 where they differ',
  options: (yargs) => maintenanceOptions(yargs.positional('file', { type: 'string', demandOption: true })),
  async run(options, context) {
    const file = text(options, 'file') ?? '';
    const found = await verifyDuckDb({
      file,
      lockWaitMs: lockWait(options),
      clock: context.clock,
      signal: context.signal,
    });
    return tellDifferences(found, file, options, context);
  },
};

export const verifyParquetFolder: Command = {
  usage: 'verify parquet <dir>',
  summary: 'The files of a Parquet dataset against its manifest and receipts; exit 1 where they differ',
  options: (yargs) => maintenanceOptions(yargs.positional('dir', { type: 'string', demandOption: true })),
  async run(options, context) {
    const dir = text(options, 'dir') ?? '';
    const { clock, logger, signal } = context;
    const found = await verifyParquet({ dir, lockWaitMs: lockWait(options), clock, logger, signal });
    return tellDifferences(found, dir, options, context);
  },
};
