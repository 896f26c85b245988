import { EXIT, type ExitCode } from '../../base/errors.ts';
import { compactDuckDb } from '../../sinks/duckdb/compact.ts';
import { compactParquet } from '../../sinks/parquet/rewrite.ts';
import { type Command, flag, type Options, text } from '../command.ts';
import type { Context } from '../context.ts';
import { lockWait, maintenanceOptions } from './maintenance.ts';

const mega = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

export const compactDuckDbFile: Command = {
  usage: 'compact duckdb <file>',
  summary: 'Writes a DuckDB file anew, without the space of rows that are gone',
  options: (yargs) => maintenanceOptions(yargs.positional('file', { type: 'string', demandOption: true })),
  async run(options, context) {
    const file = text(options, 'file') ?? '';
    const { clock, signal } = context;
    return tell(await compactDuckDb({ file, lockWaitMs: lockWait(options), clock, signal }), file, options, context);
  },
};

export const compactParquetFolder: Command = {
  usage: 'compact parquet <dir>',
  summary: 'Encodes every partition of a Parquet dataset anew and drops what is empty',
  options: (yargs) => maintenanceOptions(yargs.positional('dir', { type: 'string', demandOption: true })),
  async run(options, context) {
    const dir = text(options, 'dir') ?? '';
    const { clock, logger, signal } = context;
    return tell(
      await compactParquet({ dir, lockWaitMs: lockWait(options), clock, logger, signal }),
      dir,
      options,
      context,
    );
  },
};

interface Done {
  readonly rows: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

function tell(
  { rows, bytesBefore, bytesAfter }: Done,
  target: string,
  options: Options,
  { terminal }: Context,
): ExitCode {
  const size = `${mega(bytesBefore)} before, ${mega(bytesAfter)} now`;
  if (flag(options, 'json'))
    terminal.result(JSON.stringify({ v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter }));
  else terminal.result(`${target}: ${rows.toLocaleString('en-US')} rows, ${size}.`);
  return EXIT.done;
}
