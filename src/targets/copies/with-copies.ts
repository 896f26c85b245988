// This folder: copies for readers of a DuckDB file. A database has an id, and stores
// an identity of its file from the file system, which a plain copy of the file does not share. A copy for readers
// stores the id of its database: only such a file is ever replaced.

import { fileExists } from '../../engine/session/database-file.ts';
import type { StatefulTarget } from '../target.ts';
import { type CopiedFormat, refuseCopy } from './mark.ts';
import { checkCopy, publish } from './publish.ts';
import { copiesIn, copiesOfOriginal } from './republish.ts';

/** Adds copies for readers to a target whose place is one database file, and whose purge publishes them again. */
export const withCopies = (target: StatefulTarget, load: () => Promise<CopiedFormat>): StatefulTarget => ({
  ...target,
  options: {
    ...target.options,
    publish: 'A checked copy for readers at this path, replaced after each run that committed something',
  },
  async open(file, options) {
    const format = await load();
    if (options.publish !== undefined) await checkCopy(format, options.publish, file, options);
    const sink = await target.open(file, options);
    // A sink that holds the lock of the file publishes the copy itself.
    sink.publish ??= (copy) => format.withFile({ ...options, file }, (engine) => publish(format, engine, copy));
    return sink;
  },
  async people() {
    const [people, format] = await Promise.all([target.people(), load()]);
    return {
      ...people,
      async copies(file, options) {
        if (!fileExists(file)) return [];
        return format.withFile({ ...options, file, readOnly: true }, async (engine) => {
          await format.check(engine);
          await refuseCopy(format, engine);
          return copiesIn(engine);
        });
      },
      async tryPurge(file, query, options) {
        const trial = await people.tryPurge(file, query, options);
        const reading = { ...options, file, readOnly: true };
        return {
          ...trial,
          copiesOfOriginal: await format.withFile(reading, (engine) => copiesOfOriginal(format, engine)),
        };
      },
    };
  },
});
