import type { StatefulTarget } from '../contract.ts';
import type { FilesFormat } from './format.ts';

/** Makes a target of one Parquet file a day, over the storage and the log of its format. */
export function filesTarget(
  descriptor: Omit<StatefulTarget, 'open' | 'maintenance' | 'people'>,
  load: () => Promise<FilesFormat>,
): StatefulTarget {
  return {
    ...descriptor,
    async open(place, options) {
      const [format, { openFilesSink }] = await Promise.all([load(), import('./load.ts')]);
      return openFilesSink(format, { ...options, place });
    },
    async maintenance() {
      const [format, { maintenanceOf }] = await Promise.all([load(), import('./maintenance.ts')]);
      return maintenanceOf(format);
    },
    async people() {
      const [format, { peopleIn }] = await Promise.all([load(), import('./people.ts')]);
      return peopleIn(format);
    },
  };
}
