// This folder: the command line. `commands/` has one file a command; the other folders hold parts of single commands.

import yargs, { type Argv } from 'yargs';
import { EXIT, type ExitCode, internalError, messageOf } from '../base/errors.ts';
import { groupBy } from '../base/group.ts';
import { LOG_LEVELS } from '../base/log.ts';
import { VERSION } from '../base/version.ts';
import { type Command, type CommandEntry, flag, type Options } from './command.ts';
import { COMMANDS, FAMILIES } from './commands/index.ts';
import { contextOf, type Io } from './context.ts';
import { outcomeOf } from './outcome.ts';
import { holdResults, printableTerminal } from './terminal.ts';

const EPILOGUE = [
  'Exit: 0 done; 1 a defect, or verify found a difference; 2 usage or configuration; 3 try again later;',
  '4 days are lost at the service; 5 a deletion guard stopped the run.',
  'Tokens come from the configuration file, DFINERY_EXPORT_TOKEN, DFINERY_IMPORT_TOKEN, or the file that the same',
  'name + _FILE names; never from the command line.',
].join('\n');

const HELP_COLUMNS = 110;

interface Chosen {
  readonly command: Command;
  readonly options: Options;
}

/** Runs one command line and returns its exit code; never throws. */
export async function runCommandLine(argv: readonly string[], system: Io): Promise<ExitCode> {
  const io = { ...system, terminal: printableTerminal(system.terminal) };
  const parsed = await parse(argv);
  if (parsed.usage !== undefined) {
    await (await import('./sync/summary.ts')).printRefusal(argv, parsed.usage, io);
    return EXIT.usage;
  }
  if (parsed.chosen === undefined) {
    for (const line of parsed.output.split('\n')) io.terminal.result(line);
    return EXIT.done;
  }
  const { command, options } = parsed.chosen;
  const held = flag(options, 'json') ? holdResults(io.terminal, io.clock) : undefined;
  const context = contextOf({ ...io, terminal: held?.terminal ?? io.terminal }, options);
  try {
    if (command.refusesUnknownNames !== true) (await import('../config/environment.ts')).refuseUnknownNames(io.env);
    return await command.run(options, context);
  } catch (error) {
    const outcome = outcomeOf(error, context.signal);
    outcome.log(context.logger);
    return outcome.exit;
  } finally {
    await held?.release();
  }
}

type Choose = (command: Command, options: Options) => void;

interface Parsed {
  readonly chosen?: Chosen;
  readonly usage?: string;
  readonly output: string;
}

async function parse(argv: readonly string[]): Promise<Parsed> {
  let chosen: Chosen | undefined;
  let output = '';
  let usage = unknownCommand(argv);
  if (usage !== undefined) return { usage, output };
  const parser = define(asksForHelp(argv), (command, options) => {
    chosen = { command, options };
  });
  try {
    await parser.parse(withDashes(argv), {}, (error: unknown, _argv: unknown, printed: string) => {
      if (error) usage = oneLine(messageOf(error));
      output = printed;
    });
  } catch (error) {
    usage = oneLine(messageOf(error));
  }
  usage ??= repeated(argv);
  if (usage === undefined && chosen === undefined && output === '') usage = 'which command?';
  return { output, ...(chosen && { chosen }), ...(usage !== undefined && { usage }) };
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

/** The sentence about a first word that is no command, or a second that is no target of it: the parser would name every word and option. */
function unknownCommand([first = '', second = '']: readonly string[]): string | undefined {
  const isWord = (text: string) => text !== 'help' && /^[^-]/.test(text);
  const all = families();
  const names = [...(all.get('') ?? []).map(({ usage }) => usage.split(' ')[0]), ...Object.keys(FAMILIES)];
  if (isWord(first) && !names.includes(first)) return `there is no command "${first}": wanted ${names.join(', ')}.`;
  const targets = all.get(first)?.map(({ usage }) => usage.split(' ')[1]);
  if (targets === undefined || !isWord(second) || targets.includes(second)) return undefined;
  return `${first} knows no "${second}": wanted ${targets.join(', ')}.`;
}

/** The parser lays out its help before it runs any command: only where it is shown is that worth the time. */
const asksForHelp = (argv: readonly string[]): boolean => argv.includes('--help') || argv.includes('help');

/** Options whose value may begin with a dash: an id, or `-` for standard input. */
const DASHED = new Set(['--id', '--proof', '--file', '--query', '--column', '--purge-column', '--by-column']);

/** Stands for a `-` that is a place (`sync arrow -`): the parser would make it an empty text. */
const LONE_DASH = '\u0000-';

const dashOf = (value: unknown): unknown => (value === LONE_DASH ? '-' : value);

/** The parser takes a word with a dash for an option: such a value is tied to the option before it. */
function withDashes(argv: readonly string[]): string[] {
  const out: string[] = [];
  for (const word of argv) {
    const option = out.at(-1);
    if (option !== undefined && DASHED.has(option) && /^-(?!-)/.test(word)) out[out.length - 1] = `${option}=${word}`;
    else out.push(word === '-' ? LONE_DASH : word);
  }
  return out;
}

/** Options that may be given several times. */
const REPEATABLE = new Set(['--also', '--purge', '--in', '--forget-copy']);

/** Of other options the parser would make lists that nothing expects. */
function repeated(argv: readonly string[]): string | undefined {
  const end = argv.indexOf('--');
  const words = end === -1 ? argv : argv.slice(0, end);
  const names = words.flatMap((word) => /^(--[^=]+|-[a-z]$)/.exec(word)?.[0] ?? []);
  const twice = names.find((name, i) => names.indexOf(name) !== i && !REPEATABLE.has(name));
  return twice === undefined ? undefined : `${twice} is given more than once.`;
}

function define(showsHelp: boolean, choose: Choose): Argv {
  const parser = yargs()
    // Everything else here is in English, whatever the locale.
    .detectLocale(false)
    .scriptName('dfinery-elt')
    .usage('$0 <command>')
    .option('log-level', {
      choices: LOG_LEVELS,
      default: 'info' as const,
      describe: 'Least severity on stderr',
      global: true,
    })
    .option('log-format', {
      choices: ['text', 'json'] as const,
      default: 'text' as const,
      describe: 'Log lines on stderr',
      global: true,
    })
    .parserConfiguration({ 'parse-numbers': false, 'boolean-negation': false })
    .version(VERSION)
    .help()
    .strict()
    .demandCommand(1, 'which command?')
    .recommendCommands()
    .exitProcess(false)
    .fail((message, error) => {
      throw error ?? new Error(message);
    })
    .epilogue(EPILOGUE)
    .wrap(showsHelp ? HELP_COLUMNS : null);
  for (const [family, members] of families()) {
    if (family === '') for (const command of members) add(parser, command, command.usage, choose);
    else parser.command(family, FAMILIES[family] ?? '', (inner) => addFamily(inner, family, members, choose));
  }
  return parser;
}

/** Commands by the word that they share, in their order; `` for those of one word. */
function families(): Map<string, CommandEntry[]> {
  return groupBy(COMMANDS, ({ usage }) => {
    const [family, next] = usage.split(' ');
    if (family in FAMILIES) return family;
    // The parser would take all of them for one command, the last.
    if (/^\w/.test(next ?? '')) throw internalError(`The command "${usage}" has no family.`);
    return '';
  });
}

async function addFamily(
  parser: Argv,
  family: string,
  members: readonly CommandEntry[],
  choose: Choose,
): Promise<Argv> {
  for (const command of members) add(parser, command, command.usage.slice(family.length + 1), choose);
  if (family === 'sync') parser.epilogue((await import('./configuration.ts')).sourceEnvironmentHelp());
  return parser.demandCommand(1, `${family} what? ${FAMILIES[family]}`).strict();
}

function add(parser: Argv, entry: CommandEntry, usage: string, choose: Choose): void {
  let command: Command | undefined;
  parser.command(
    usage,
    entry.summary,
    async (builder) => {
      command = await entry.load();
      return command.options(builder);
    },
    (argv) => command && choose(command, asOptions(argv)),
  );
}

/** What yargs parsed: every value is looked at again where it is used. */
const asOptions = (argv: object): Options =>
  Object.fromEntries(
    Object.entries(argv).map(([name, value]) => [name, Array.isArray(value) ? value.map(dashOf) : dashOf(value)]),
  ) as Options;
