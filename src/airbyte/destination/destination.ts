// This folder: the Airbyte destination. `check.ts` and `write.ts` are its verbs. `write.ts` reads `input-messages.ts`,
// refuses streams by `id-streams.ts`, and gives states back by `state-queue.ts`.

import schema from '../../../schemas/destination-config.json' with { type: 'json' };
import type { Connector, Verb } from '../protocol/connector.ts';
import { specMessage } from '../protocol/messages.ts';

const spec: Verb = async () => specMessage('destination-dfinery', schema, ['append', 'append_dedup']);

export const destination: Connector = {
  spec: { requiredFiles: [], load: async () => spec },
  check: { requiredFiles: ['config'], load: async () => (await import('./check.ts')).check },
  write: { requiredFiles: ['config', 'catalog'], load: async () => (await import('./write.ts')).write },
};
