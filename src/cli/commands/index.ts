// This folder: one file a command, with its options and what it does. The list below is loaded at every start, a command's file
// only when it was chosen.

import type { Target } from '../../sinks/target.ts';
import { STATEFUL_TARGETS, TARGETS } from '../../sinks/targets.ts';
import type { Command } from '../command.ts';

/** A line of the list of commands: the text of help, and how to load its file once it was chosen. */
export interface CommandEntry {
  /** `sync duckdb <file>`. */
  readonly usage: string;
  readonly summary: string;
  /** What `sync` does, before a target is named: the list of all commands has one line for it. */
  readonly family?: string;
  load(): Promise<Command>;
}

/** The words of a command: `sync`, `duckdb`. */
export const wordsOf = ({ usage }: CommandEntry): string[] => usage.replace(/ [<[].*/, '').split(' ');

/** In the order in which help lists them. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    usage: 'demo [file]',
    summary: 'The embedded service into a DuckDB file, and what is then in it; no account needed',
    load: async () => (await import('./demo.ts')).demo,
  },
  {
    usage: 'init',
    summary: 'Asks for address, service and token, tries them, and writes dfinery.json without the token',
    load: async () => (await import('./init.ts')).init,
  },
  ...ofTargets({
    verb: 'sync',
    targets: TARGETS,
    family: 'The export into a local target',
    summary: ({ summaries }) => summaries.sync,
    load: async (target) => (await import('./sync.ts')).syncInto(target),
  }),
  {
    usage: 'plan',
    summary: 'Windows, exports and time of the next sync, before any call',
    load: async () => (await import('./plan.ts')).plan,
  },
  {
    usage: 'check',
    summary: 'One smallest export: is the configuration right, and does the service answer?',
    load: async () => (await import('./check.ts')).check,
  },
  {
    usage: 'discover',
    summary: 'The typed schema of the export, as JSON for --schema; costs two exports',
    load: async () => (await import('./discover.ts')).discover,
  },
  {
    usage: 'inspect <file>',
    summary: 'Groups, types and values of an export already at hand (a CSV file); no network',
    load: async () => (await import('./inspect.ts')).inspect,
  },
  ...ofTargets({
    verb: 'verify',
    targets: STATEFUL_TARGETS,
    family: 'A target against its receipts',
    summary: ({ noun }) => `The rows of ${noun} against the receipts of what was loaded; exit 1 where they differ`,
    load: async (target) => (await import('./verify.ts')).verifyIn(target),
  }),
  ...ofTargets({
    verb: 'compact',
    targets: STATEFUL_TARGETS,
    family: 'A target written anew',
    summary: ({ summaries }) => summaries.compact,
    load: async (target) => (await import('./compact.ts')).compactIn(target),
  }),
  ...ofTargets({
    verb: 'report',
    targets: STATEFUL_TARGETS,
    family: 'A page about a target',
    summary: ({ noun }) => `One page about ${noun}: days, events, columns, runs`,
    load: async (target) => (await import('./report.ts')).reportOn(target),
  }),
  {
    usage: 'models duckdb <file>',
    summary: 'Ready views and a macro over the events, in the schema analytics of a DuckDB file',
    load: async () => (await import('./models.ts')).models,
  },
  {
    usage: 'forget',
    summary: 'Deletes profiles at the service, after a plan that is confirmed by its hash; proves what was deleted',
    load: async () => (await import('./forget.ts')).forget,
  },
  {
    usage: 'person',
    summary: 'All that places hold about people, found as by a purge: one JSON object a row',
    load: async () => (await import('./person.ts')).person,
  },
  {
    usage: 'simulate',
    summary: 'The embedded service: both operations over HTTP on loopback, with limits and faults on demand',
    load: async () => (await import('./simulate.ts')).simulate,
  },
];

/** The command that a command line begins with. */
export const commandAt = (words: readonly string[]): CommandEntry | undefined =>
  COMMANDS.find((entry) => wordsOf(entry).every((word, i) => word === words[i]));

interface TargetCommand<T extends Target> {
  readonly verb: string;
  readonly targets: readonly T[];
  /** What the command does to any of the targets. */
  readonly family: string;
  summary(target: T): string;
  load(target: T): Promise<Command>;
}

/** `VERB TARGET <place>` for each target. */
function ofTargets<T extends Target>({ verb, targets, family, summary, load }: TargetCommand<T>): CommandEntry[] {
  const names = targets.map(({ name }) => name);
  return targets.map((target) => ({
    usage: `${verb} ${target.name} <${target.place.name}>`,
    summary: summary(target),
    family: `${family}: ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`,
    load: () => load(target),
  }));
}
