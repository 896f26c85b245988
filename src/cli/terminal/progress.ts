import { formatDuration } from '../../base/quantities.ts';
import type { Context } from '../context.ts';

/** How far some work is. A person sees it below the log, with a bar. Elsewhere it is a line of the log now and then. */
export interface Progress {
  readonly text: string;
  readonly bar?: string;
}

const TICK_MS = 500;
const LOG_EVERY_MS = 30_000;

/** Shows how far `work` is until it has settled. */
export async function withProgress<T>(
  progress: () => Progress,
  work: Promise<T>,
  { terminal, clock, logger }: Context,
): Promise<T> {
  let lastLoggedAt = clock.now();
  const ticker = setInterval(() => {
    const { text, bar } = progress();
    terminal.showStatus(bar === undefined ? text : `${bar} ${text}`);
    if (terminal.isInteractive || clock.now() - lastLoggedAt < LOG_EVERY_MS) return;
    logger.info('run.progress', text);
    lastLoggedAt = clock.now();
  }, TICK_MS);
  try {
    return await work;
  } finally {
    clearInterval(ticker);
    terminal.showStatus();
  }
}

/** Shows for how long `work` has been under way, until it has settled. */
export function withElapsedTime<T>(activity: string, work: Promise<T>, context: Context): Promise<T> {
  const began = context.clock.now();
  return withProgress(() => ({ text: `${activity} · ${formatDuration(context.clock.now() - began)}` }), work, context);
}
