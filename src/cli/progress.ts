import { formatDuration } from '../base/durations.ts';
import type { Context } from './context.ts';

/** How far some work is. A person sees it below the log, with a bar. Elsewhere it is a line of the log now and then. */
export interface Progress {
  readonly text: string;
  readonly bar?: string;
  readonly lineEveryMs: number;
}

const SLOW_LINE_EVERY_MS = 30_000;
const TICK_MS = 500;

/** Shows how far `work` is while it is under way. */
export async function withProgress<T>(
  progress: () => Progress,
  work: () => Promise<T>,
  { terminal, clock, logger }: Context,
): Promise<T> {
  let lastLineAt = clock.now();
  const ticker = setInterval(() => {
    const { text, bar, lineEveryMs } = progress();
    terminal.status(bar === undefined ? text : `${bar} ${text}`);
    if (terminal.interactive || clock.now() - lastLineAt < lineEveryMs) return;
    logger.info('run.progress', text);
    lastLineAt = clock.now();
  }, TICK_MS);
  try {
    return await work();
  } finally {
    clearInterval(ticker);
    terminal.status();
  }
}

/** Shows for how long `work` has been under way. */
export function during<T>(what: string, work: () => Promise<T>, context: Context): Promise<T> {
  const began = context.clock.now();
  const text = () => `${what} · ${formatDuration(context.clock.now() - began)}`;
  return withProgress(() => ({ text: text(), lineEveryMs: SLOW_LINE_EVERY_MS }), work, context);
}
