import { printable } from './text.ts';

/** Severities, least first; the names are those of the command line's `--log-level`. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One thing that happened. `event` is a stable, dotted name (`export.retry`). Fields hold no long texts. */
export interface LogEvent {
  readonly level: LogLevel;
  readonly event: string;
  readonly message: string;
  readonly fields?: LogFields | undefined;
}

export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** Where events go: stderr for the command line, LOG messages for the connectors, an array in tests. */
export type LogSink = (event: LogEvent) => void;

export type Logger = Readonly<Record<LogLevel, (event: string, message: string, fields?: LogFields) => void>>;

/** A logger that drops what is below `level`. The sink gets texts of one line, printable, with secrets masked. */
export function createLogger(sink: LogSink, level: LogLevel, mask: (text: string) => string): Logger {
  const leastIndex = LOG_LEVELS.indexOf(level);
  const clean = (text: string) => printable(mask(text));
  const logAt = (name: LogLevel) => (event: string, message: string, fields?: LogFields) => {
    if (LOG_LEVELS.indexOf(name) < leastIndex) return;
    const texts = Object.entries(fields ?? {}).map(([k, v]) => [k, typeof v === 'string' ? clean(v) : v]);
    sink({ level: name, event, message: clean(message), ...(fields && { fields: Object.fromEntries(texts) }) });
  };
  return { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
}
