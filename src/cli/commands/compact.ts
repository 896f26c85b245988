import { internalError } from '../../base/errors.ts';
import { count, formatBytes } from '../../base/quantities.ts';
import { duckdb } from '../../targets/duckdb/duckdb-target.ts';
import { defineCommand } from '../command.ts';
import { Configuration } from '../configuration.ts';
import { placeArguments, placeOf } from '../place-arguments.ts';
import { during } from '../run/progress.ts';

export const command = defineCommand({
  options: placeArguments([duckdb]),
  examples: ['compact duckdb events.duckdb', 'compact duckdb events.duckdb --json'],
  page: 'operations.md',
  async run(values, context) {
    const configuration = new Configuration(values.config, context);
    const { target, place } = placeOf('compact', values, [duckdb], configuration);
    const { compact } = await target.maintenance();
    if (compact === undefined) throw internalError(`${target.name} has no compact.`);
    const work = compact(place, configuration.placeOptions());
    const { rows, bytesBefore, bytesAfter } = await during(`Compacting ${place}`, work, context);
    const size = `${formatBytes(bytesBefore)} before, ${formatBytes(bytesAfter)} now`;
    const result = { v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter };
    return { result, lines: [`${place}: ${count(rows, 'row')}, ${size}.`] };
  },
});
