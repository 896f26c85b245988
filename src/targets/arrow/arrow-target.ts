import { WriteStream } from 'node:tty';
import { configError } from '../../base/errors.ts';
import type { Target } from '../contract.ts';

const STDOUT = '-';

/** One Arrow IPC stream of all days, into a file or on stdout. It stores no state to verify. */
export const arrow: Target = {
  name: 'arrow',
  placeForms: ['FILE', STDOUT],
  isStdout: (place) => place === STDOUT,
  async open(place, options) {
    if (place === STDOUT && options.stdout instanceof WriteStream) {
      throw configError('stdout is a terminal, and an Arrow stream is binary: write it into a file or a pipe.');
    }
    const out = place === STDOUT ? options.stdout : place;
    return {
      // A file gets its name once it is complete. Without a pinned schema nothing is sent before the last day. A pipe
      // that is given by its path counts as a file: after a failure nothing of it is reported as loaded.
      isAllOrNothing: place !== STDOUT || options.pinned === undefined,
      async write(days, onSent) {
        const { writeArrow } = await import('./write-arrow.ts');
        return writeArrow(days, out, options, onSent);
      },
    };
  },
};
