import { formatBytes, formatCount } from '../../base/quantities.ts';
import { duckdb } from '../../targets/targets.ts';
import { defineCommand } from '../command.ts';
import { readPlaceAndConfig } from '../places.ts';
import { withElapsedTime } from '../terminal/progress.ts';

export const command = defineCommand({
  targets: [duckdb],
  examples: ['compact duckdb events.duckdb', 'compact duckdb events.duckdb --json'],
  docsPage: 'operations.md',
  async run(values, context) {
    const { place } = readPlaceAndConfig(values, [duckdb], context);
    const { compactFile } = await import('../../targets/duckdb/file-copy.ts');
    const activity = `Compacting ${place.address}`;
    const { rows, bytesBefore, bytesAfter } = await withElapsedTime(activity, compactFile(place), context);
    const size = `${formatBytes(bytesBefore)} before, ${formatBytes(bytesAfter)} now`;
    const result = { v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter };
    return { result, lines: [`${place.address}: ${formatCount(rows, 'row')}, ${size}.`] };
  },
});
