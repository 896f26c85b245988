import { EXIT } from '../../base/errors.ts';
import type { Place, StatefulTarget } from '../../targets/contract.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { defineCommand } from '../command.ts';
import { readPlaceAndConfig } from '../places.ts';
import type { Verification } from '../results.ts';
import { withElapsedTime } from '../terminal/progress.ts';

export const command = defineCommand({
  targets: STATEFUL_TARGETS,
  examples: ['verify duckdb events.duckdb', 'verify delta s3://bucket/events --json'],
  docsPage: 'operations.md',
  async run(values, context) {
    const { place } = readPlaceAndConfig(values, STATEFUL_TARGETS, context);
    const verification = await withElapsedTime(`Verifying ${place.address}`, verifyPlace(place), context);
    const { differences, warnings } = verification;
    for (const warning of warnings) context.logger.warn('verify.warning', warning);
    const agrees = differences.length === 0;
    const lines = differences.map(({ check, message }) => `${check}: ${message}`);
    if (agrees) lines.push(`${place.address} agrees with its receipts.`);
    return { result: verification, lines, exitCode: agrees ? EXIT.done : EXIT.failed };
  },
});

export async function verifyPlace(place: Place<StatefulTarget>): Promise<Verification> {
  const { target, address } = place;
  const { differences, warnings } = await (await target.maintenance(place)).verify();
  return { v: 1, target: target.name, place: address, differences, warnings };
}
