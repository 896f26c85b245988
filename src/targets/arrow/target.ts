import type { Target } from '../target.ts';

const STDOUT = '-';

/** One Arrow IPC stream of all windows, into a file or on stdout. It stores no state to verify. */
export const arrow: Target = {
  name: 'arrow',
  place: { name: 'file', describe: 'The file, or - for stdout' },
  summaries: { sync: 'The export as one Arrow IPC stream, into a file or (-) on stdout; remembers nothing' },
  isStdout: (place) => place === STDOUT,
  async open(place, options) {
    const out = place === STDOUT ? options.stdout : place;
    return {
      // A file gets its name once it is complete; without a pinned schema nothing is sent before the last window.
      isAllOrNothing: place !== STDOUT || options.pinned === undefined,
      async write(windows, onSent) {
        const { writeArrow } = await import('./write-arrow.ts');
        return writeArrow(windows, { ...options, out, onSent });
      },
    };
  },
};
