import type { Target } from '../../sinks/target.ts';
import type { Command } from '../command.ts';
import { maintenanceOptions } from '../maintenance.ts';

/** `compact TARGET PLACE`, for a target that can. */
export function compactCommands({ name, place, summaries, compact }: Target): Command[] {
  const summary = summaries.compact;
  if (compact === undefined || summary === undefined) return [];
  return [
    {
      usage: `compact ${name} <${place.name}>`,
      summary,
      options: (yargs) => maintenanceOptions(yargs.positional(place.name, { type: 'string', demandOption: true })),
      handler: async () => (await import('../handlers/compact.ts')).compactIn({ place, compact }),
    },
  ];
}
