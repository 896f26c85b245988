import type { StatefulTarget } from '../contract.ts';

export const duckdb: StatefulTarget = {
  name: 'duckdb',
  placeForms: ['FILE'],
  open: async (file, options) => (await import('./sink.ts')).openDuckDbSink(file, options),
  maintenance: async () => (await import('./file-maintenance.ts')).MAINTENANCE,
  people: async () => (await import('./file-people.ts')).PEOPLE,
};
