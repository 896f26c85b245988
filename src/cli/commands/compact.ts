import { configError, EXIT } from '../../base/errors.ts';
import { count, formatBytes } from '../../base/quantities.ts';
import { defineCommand, printResult, STORED_PLACE } from '../command.ts';
import { placeOptions } from '../configuration.ts';
import { during } from '../run/progress.ts';

export const command = defineCommand({
  options: STORED_PLACE,
  examples: ['compact duckdb events.duckdb', 'compact duckdb events.duckdb --json'],
  page: 'operations.md',
  async run({ target, place, ...values }, context) {
    const { compact } = await target.maintenance();
    if (compact === undefined) throw configError(`${target.name} has no space to give back: compact is for duckdb.`);
    const work = compact(place, placeOptions(values, context));
    const { rows, bytesBefore, bytesAfter } = await during(`Compacting ${place}`, work, context);
    const size = `${formatBytes(bytesBefore)} before, ${formatBytes(bytesAfter)} now`;
    const result = { v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter };
    printResult(result, [`${place}: ${count(rows, 'row')}, ${size}.`], values.json, context);
    return EXIT.done;
  },
});
