import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addDays } from '../../src/base/days.ts';
import type { Line } from './command-line.ts';
import type { Held } from './places.ts';
import { type Act, CAP, START } from './story.ts';
import type { Ended, SpawnOptions, World } from './world.ts';

const memberNo = (user: number): string => String(user).padStart(8, '0');

/** A deletion that was planned: what it is to be started with, and whom it may touch. */
export interface Planned {
  readonly line: Line;
  readonly ids: readonly string[];
  /** The `df_unified_id`s of the people whom it purges. */
  readonly people: readonly string[];
}

/** Who was asked to be deleted, and who must never be seen again. */
export class People {
  readonly #world: World;
  /** External ids that some list named. */
  readonly asked = new Set<string>();
  /** `df_unified_id`s whose purge ended well. */
  readonly purged = new Set<string>();
  /** The same of purges that did not: they may be there or not. */
  readonly inDoubt = new Set<string>();
  #lists = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Plans a deletion as a user does; undefined when the plan itself fails, which only faults may make it. */
  async plan({ what, users }: Act, held: Held, how: SpawnOptions): Promise<Planned | undefined> {
    const world = this.#world;
    const ids = users.map(memberNo);
    const file = join(world.dir, `list-${++this.#lists}.txt`);
    writeFileSync(file, `${ids.join('\n')}\n`);
    const isThere = held.rows.length > 0 && existsSync(world.place);
    const purges = what === 'purge' && isThere;
    const options = {
      file,
      config: join(world.dir, 'destination.json'),
      ...(purges && { purge: [world.story.target, world.place], purgeColumn: 'member_no' }),
      ...(purges && { suppressionFile: world.suppression, spoolDir: world.spool }),
    };
    const planned = await world.runOne({ command: 'forget', options }, how);
    if (planned.code !== 0) throw new Error(`a plan ended with ${planned.code}: ${planned.log.slice(-3).join('\n')}`);
    const { hash } = JSON.parse(planned.results.at(-1) ?? '{}') as { hash?: string };
    const wanted = new Set(ids);
    const people = held.rows.flatMap(({ cells }) => {
      const id = cells.get('df_unified_id');
      return purges && id !== undefined && wanted.has(cells.get('member_no') ?? '') ? [id] : [];
    });
    for (const id of ids) this.asked.add(id);
    // A load at the same time may bring in what makes a person known: then they are purged as well.
    if (purges) for (const one of this.#known(wanted)) this.inDoubt.add(one);
    return {
      line: { command: 'forget', options: { ...options, execute: true, confirm: hash } },
      ids,
      people: [...new Set(people)],
    };
  }

  /** The `df_unified_id`s that the service knows for these external ids. */
  #known(ids: ReadonlySet<string>): string[] {
    const rows = [...this.#world.original.truth({ from: START, to: addDays(START, 30) })];
    return rows.filter((row) => ids.has(row.get('member_no') ?? '')).map((row) => row.get('df_unified_id') ?? '');
  }

  /** Takes note of how an executed deletion ended; gives what is wrong with it. */
  ended({ ids, people }: Planned, { code, log }: Ended, before: ReadonlyMap<string, number>): string[] {
    const now = this.counts();
    const touched = [...now].filter(([id, count]) => count > (before.get(id) ?? 0)).map(([id]) => id);
    const wrong: string[] = [];
    for (const id of touched) if (!this.asked.has(id)) wrong.push(`${id} was deleted and nobody asked for it`);
    if (ids.length > CAP && touched.length > 0) wrong.push(`${touched.length} people deleted above the cap of ${CAP}`);
    if (code !== 0) return wrong;
    for (const id of ids)
      if ((now.get(id) ?? 0) === 0) wrong.push(`${id} was never deleted, yet all is said to be done`);
    for (const one of people) {
      this.purged.add(one);
      this.inDoubt.delete(one);
    }
    if (ids.length > CAP) wrong.push(`a list above the cap was done: ${log.slice(-3).join('\n')}`);
    return wrong;
  }

  /** How often the service was asked to delete each id. */
  counts(): Map<string, number> {
    return new Map(this.#world.service.deletions().map(({ externalId, count }) => [externalId, count]));
  }

  /** The ledger, by the program's own proof and by what the service knows. */
  async ledgerProblems(): Promise<string[]> {
    const world = this.#world;
    const files = existsSync(world.ledger) ? readdirSync(world.ledger) : [];
    if (!files.some((name) => name.endsWith('.jsonl'))) return [];
    const options = { verifyLedger: world.ledger, config: join(world.dir, 'destination.json') };
    const { code, results } = await world.runOne({ command: 'forget', options });
    if (code !== 0) return [`the ledger is not whole: ${results.join(' ')}`];
    const text = files
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => readFileSync(join(world.ledger, name), 'utf8'));
    const told = text.join('').split('"kind":"before"').length - 1;
    const sent = [...this.counts().values()].reduce((sum, count) => sum + count, 0);
    return sent <= told ? [] : [`${sent} deletions were sent, the ledger knows of ${told}`];
  }
}
