import type { Storage } from '../storage/storage.ts';
import type { Action } from './actions.ts';
import { entryPath } from './paths.ts';
import type { Snapshot } from './snapshot.ts';

/** The application id of this program in the log's `txn` actions. */
export const APP_ID = 'dfinery-elt';

/**
 * Makes the next version of a table, or changes nothing: false when somebody else made it first. An entry that is there
 * with exactly these bytes is our own, whose answer was lost: it names a transaction that nobody else has.
 */
export async function commitEntry(
  { storage, folder }: { readonly storage: Storage; readonly folder: string },
  snapshot: Snapshot,
  actions: readonly Action[],
): Promise<boolean> {
  const version = snapshot.version + 1;
  const path = `${folder}/${entryPath(version)}`;
  const text = `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;
  const isOurs = (await storage.create(path, text)) || (await storage.read(path))?.toString('utf8') === text;
  if (isOurs) snapshot.apply(version, actions);
  return isOurs;
}
