import { secretFrom } from '../../base/env.ts';
import { configFailure } from '../../base/errors.ts';
import { type Secret, Secret as SecretText } from '../../base/secrets.ts';
import { type PurgeCounts, type Purger, purgeAll } from '../../deletion/execute/purge.ts';
import { rowsFromFile } from '../../deletion/input/id-list.ts';
import type { Ledger } from '../../deletion/ledger/ledger.ts';
import type { HashedColumns } from '../../extract/hashed-columns.ts';
import { sweepRunFolders } from '../../extract/spool/run-folder.ts';
import { foreignSpoolFolders, spoolFolders } from '../../extract/spool/spool.ts';
import { purgeSpools } from '../../extract/spool/sweep.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import { HashKey } from '../../schema/hash-key.ts';
import type { PlaceOptions, PurgeTarget, Removal, Rewritten } from '../../sinks/target.ts';
import { isPurgeTarget, TARGETS } from '../../sinks/targets.ts';
import { checkSuppression, suppress } from '../../suppression/append.ts';
import { type Options, shownOption, text } from '../command.ts';
import type { Context } from '../context.ts';
import { lockWait, spoolDirOption } from '../maintenance.ts';
import { purgePlaces } from './places.ts';
import { StoredValues } from './stored-values.ts';

/** The place to purge, and how people are found there. */
export interface PurgeRequest {
  readonly target: PurgeTarget;
  readonly path: string;
  readonly column: string | undefined;
  readonly mapping: string | undefined;
  /** Hashed columns of the place; known once people were looked up. */
  readonly stored: StoredValues;
  readonly suppressionFile: string | undefined;
  readonly suppressionKey: Secret | undefined;
  readonly spoolDir: string;
  readonly lockWaitMs: number;
}

/** Reads `--purge KIND PATH` and what belongs to it; undefined when nothing is to be purged. */
export function purgeRequest(options: Options, context: Context): PurgeRequest | undefined {
  const given = Array.isArray(options.purge) ? options.purge.map(String) : [];
  if (given.length === 0) return nothingToPurge(options);
  const { env, redactor } = context;
  const [name, path] = given;
  const target = TARGETS.filter(isPurgeTarget).find((one) => one.name === name);
  if (target === undefined || path === undefined) throw configFailure(`--purge needs ${purgePlaces('"')}.`);
  const [column, mapping] = [text(options, 'purgeColumn'), text(options, 'mapping')];
  if ((column === undefined) === (mapping === undefined)) {
    throw configFailure('--purge needs exactly one of --purge-column and --mapping, to find the people there.');
  }
  const suppressionFile = text(options, 'suppressionFile');
  const key = secretFrom(env, 'DFINERY_SUPPRESSION_KEY');
  if (suppressionFile !== undefined && key === undefined) {
    throw configFailure(
      '--suppression-file needs the key in DFINERY_SUPPRESSION_KEY (or the file that DFINERY_SUPPRESSION_KEY_FILE names).',
    );
  }
  const suppressionKey = key === undefined ? undefined : new SecretText(key);
  redactor.add(suppressionKey);
  if (suppressionFile !== undefined && suppressionKey) checkSuppression(suppressionFile, suppressionKey);
  const spoolDir = spoolDirOption(options, env);
  const stored = new StoredValues(path, hashKey(context), context.logger);
  const lockWaitMs = lockWait(options);
  return { target, path, column, mapping, stored, suppressionFile, suppressionKey, spoolDir, lockWaitMs };
}

function hashKey({ env, redactor }: Context): HashKey | undefined {
  const found = secretFrom(env, 'DFINERY_HASH_KEY');
  const key = found === undefined ? undefined : new SecretText(found);
  redactor.add(key);
  return key && new HashKey(key);
}

function nothingToPurge(options: Options): undefined {
  const without = ['suppressionFile', 'mapping', 'purgeColumn'].find((name) => text(options, name) !== undefined);
  if (without === undefined) return undefined;
  throw configFailure(`${shownOption(without)} needs --purge: people are looked up in what was loaded.`);
}

/** The people behind external IDs. */
interface Resolved {
  /** Their `df_unified_id`s, as the place or the mapping has them. */
  readonly people: readonly string[];
  /** Of the IDs, how many were found. */
  readonly matched: number;
  /** Of these, how many in rows that no `df_unified_id` names. */
  readonly matchedWithoutId: number;
}

/** The people behind these external IDs, looked up before anything is deleted. */
export async function resolvePeople(
  request: PurgeRequest,
  ids: readonly string[],
  context: Context,
): Promise<Resolved> {
  const { target, path, mapping, stored } = request;
  // With a mapping the target is opened all the same: what cannot be purged must show before anything is deleted.
  const column = request.column ?? UNIFIED_ID;
  const textsIn = (hashed: readonly HashedColumns[]) => {
    stored.learn(hashed, column);
    return mapping === undefined ? stored.textsOf(column, ids) : [];
  };
  const { people, found, foundWithoutId } = await target.people(path, column, textsIn, optionsOf(request, context));
  if (mapping !== undefined) return fromMapping(mapping, new Set(ids));
  const countOf = (texts: readonly string[]) => stored.among(column, ids, texts).length;
  return { people, matched: countOf(found), matchedWithoutId: countOf(foundWithoutId) };
}

/** A CSV or JSON Lines file with the columns external_id and df_unified_id. */
async function fromMapping(path: string, ids: ReadonlySet<string>): Promise<Resolved> {
  const people = new Set<string>();
  const matched = new Set<string>();
  for await (const [id, person] of rowsFromFile(path, ['external_id', UNIFIED_ID])) {
    if (typeof id !== 'string' || !ids.has(id) || typeof person !== 'string' || person === '') continue;
    people.add(person);
    matched.add(id);
  }
  return { people: [...people], matched: matched.size, matchedWithoutId: 0 };
}

/** Checks before any deletion that the purge can succeed, and warns of tables that it does not touch. Throws Failure. */
export async function checkPurge(
  request: PurgeRequest,
  people: readonly string[],
  ids: readonly string[],
  context: Context,
): Promise<void> {
  const { target, path, spoolDir } = request;
  const others = (await target.checkPurge?.(path, removalsOf(request, people, ids), optionsOf(request, context))) ?? [];
  if (others.length > 0) {
    context.logger.warn(
      'purge.others',
      `${path} also has tables that are not ours (${others.join(', ')}): they stay as they are, and may name the people.`,
      { tables: others.join(', ') },
    );
  }
  const folders = await foreignSpoolFolders(spoolDir);
  if (folders.length > 0) {
    context.logger.warn(
      'purge.spools',
      `Spool folders of other users are out of reach and may name the people: ${folders.join(', ')}.`,
      { folders: folders.join(', ') },
    );
  }
}

/** Purges the target and the spools, and keeps the people on the suppression list; each count goes into the ledger. */
export async function purge(
  request: PurgeRequest,
  people: readonly string[],
  ids: readonly string[],
  ledger: Pick<Ledger, 'purge'>,
  context: Context,
): Promise<PurgeCounts | undefined> {
  // First the list: a sync that runs in between must not bring anybody back.
  await suppressPeople(request, people, context);
  await purgeSpools(await spoolFolders(request.spoolDir), context.clock.now());
  await sweepRunFolders(request.spoolDir, context.clock.now());
  const counts = await purgeAll([purgerOf(request, ids, context)], () => each(people), ledger, context.signal);
  return [...counts.values()][0];
}

/** The rows that a purge removes, one condition after the other. */
function removalsOf(request: PurgeRequest, people: readonly string[], ids: readonly string[]): Removal[] {
  const { column, stored } = request;
  const first = { column: UNIFIED_ID, values: stored.textsOf(UNIFIED_ID, people) };
  // Rows that name the person without a unified id hold the external ID all the same.
  return column === undefined ? [first] : [first, { column, values: stored.textsOf(column, ids) }];
}

/** Who is known by a hash alone is on the list by the hash, with the key that it is under. */
async function suppressPeople(request: PurgeRequest, people: readonly string[], context: Context): Promise<void> {
  const { suppressionFile: file, suppressionKey: key, stored } = request;
  if (file === undefined || key === undefined) return;
  const { clock, signal } = context;
  const hashes = people.filter((id) => stored.isHash(id));
  const plain = people.filter((id) => !stored.isHash(id));
  await suppress(file, each(plain), key, { clock, signal });
  if (hashes.length > 0) await suppress(file, each(hashes), key, { clock, signal, hashKey: stored.idKeyCheck });
}

async function* each(texts: readonly string[]): AsyncGenerator<string> {
  yield* texts;
}

function purgerOf(request: PurgeRequest, ids: readonly string[], context: Context): Purger {
  const { target, path } = request;
  return {
    target: `${target.name} ${path}`,
    async purge(unifiedIds) {
      const place = optionsOf(request, context);
      const people: string[] = [];
      for await (const id of unifiedIds) people.push(id);
      const done: Rewritten[] = [];
      for (const removal of removalsOf(request, people, ids)) done.push(await target.purge(path, removal, place));
      return {
        people: people.length,
        rows: done.reduce((sum, { rowsRemoved }) => sum + rowsRemoved, 0),
        files_rewritten: new Set(done.flatMap(({ files }) => files)).size,
        bytes_before: done[0]?.bytesBefore ?? 0,
        bytes_after: done.at(-1)?.bytesAfter ?? 0,
      };
    },
  };
}

function optionsOf({ lockWaitMs, spoolDir }: PurgeRequest, { env, clock, logger, signal }: Context): PlaceOptions {
  return { lockWaitMs, spoolDir, env, clock, logger, signal };
}
