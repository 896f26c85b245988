import type { OpenOptions, PlaceOptions, Target } from '../target.ts';
import type { FilesFormat } from './open.ts';

type Described = Pick<Target, 'name' | 'place' | 'summaries' | 'hasData' | 'publishes'>;

/** The descriptor of a target that keeps Parquet files: all that it does is done here, over its log and storage. */
export function filesTarget(described: Described, load: () => Promise<FilesFormat>): Target {
  const at = <O extends PlaceOptions | OpenOptions>(place: string, options: O) => ({ ...options, place });
  return {
    ...described,
    open: async (place, options) => {
      const { loaderOf } = await import('../load.ts');
      const { openFilesSink } = await import('./load.ts');
      return loaderOf(await openFilesSink(await load(), at(place, options)));
    },
    readPriorLoads: async (place, options) => {
      const { readFilesPriorLoads } = await import('./load.ts');
      return readFilesPriorLoads(await load(), at(place, options));
    },
    verify: async (place, options) => (await import('./verify.ts')).verifyFiles(await load(), at(place, options)),
    compact: async (place, options) => (await import('./rewrite.ts')).compactFiles(await load(), at(place, options)),
    report: async (place, options) => (await import('./report.ts')).reportFiles(await load(), at(place, options)),
    people: async (place, query, options) =>
      (await import('./purge.ts')).peopleInFiles(await load(), at(place, options), query),
    checkPurge: async (place, query, options) =>
      (await import('./purge.ts')).checkPurgeFiles(await load(), at(place, options), query),
    purge: async (place, query, options) =>
      (await import('./purge.ts')).purgeFiles(await load(), at(place, options), query, options.onFound),
    async *rowsOfPeople(place, query, options) {
      const { rowsOfPeopleInFiles } = await import('./purge.ts');
      yield* rowsOfPeopleInFiles(await load(), at(place, options), query);
    },
  };
}
