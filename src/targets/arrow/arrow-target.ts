import { WriteStream } from 'node:tty';
import { configError } from '../../base/errors.ts';
import type { OpenOptions, StreamSink, Target } from '../contract.ts';

const STDOUT = '-';

/** One Arrow IPC stream of all days, into a file or on stdout. It stores no state to verify. */
export const arrow = {
  name: 'arrow',
  placeForms: ['FILE', STDOUT],
  isStdout: (place) => place === STDOUT,
  async open(place: string, openOptions: OpenOptions): Promise<StreamSink> {
    const { pinned, stdout } = openOptions;
    if (place === STDOUT && stdout instanceof WriteStream) {
      throw configError('stdout is a terminal, and an Arrow stream is binary: write it into a file or a pipe.');
    }
    const out = place === STDOUT ? stdout : place;
    // What a stream with a given schema lacks goes to `_rescued`.
    const options: OpenOptions = pinned === undefined ? openOptions : { ...openOptions, schemaMode: 'freeze' };
    return {
      // A file gets its name once it is complete. Without a pinned schema nothing is sent before the last day. A pipe
      // that is given by its path counts as a file: after a failure nothing of it is reported as loaded.
      isAllOrNothing: place !== STDOUT || pinned === undefined,
      async write(days, onSent) {
        const { writeArrow } = await import('./write-arrow.ts');
        return writeArrow(days, out, options, onSent);
      },
    };
  },
} satisfies Target;
