import type { Target } from '../../sinks/target.ts';
import type { Command } from '../command.ts';
import { maintenanceOptions } from '../maintenance.ts';

/** `verify TARGET PLACE`, for a target that can. */
export function verifyCommands({ name, place, summaries, verify }: Target): Command[] {
  const summary = summaries.verify;
  if (verify === undefined || summary === undefined) return [];
  return [
    {
      usage: `verify ${name} <${place.name}>`,
      summary,
      options: (yargs) => maintenanceOptions(yargs.positional(place.name, { type: 'string', demandOption: true })),
      handler: async () => (await import('../handlers/verify.ts')).verifyIn({ place, verify }),
    },
  ];
}
