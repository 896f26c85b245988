import type { Target } from '../contract.ts';

const STDOUT = '-';

/** One Arrow IPC stream of all days, into a file or on stdout. It stores no state to verify. */
export const arrow: Target = {
  name: 'arrow',
  placeName: 'file',
  isStdout: (place) => place === STDOUT,
  async open(place, options) {
    const out = place === STDOUT ? options.stdout : place;
    return {
      // A file gets its name once it is complete; without a pinned schema nothing is sent before the last day.
      isAllOrNothing: place !== STDOUT || options.pinned === undefined,
      async write(days, onSent) {
        const { writeArrow } = await import('./write-arrow.ts');
        return writeArrow(days, { ...options, out, onSent });
      },
    };
  },
};
