import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { World } from './world.ts';

/** Where bytes still name people who were purged: target, copies, downloads and temporary files (S37). */
export function tracesOf(world: World, people: readonly string[]): string[] {
  const texts = people.map((one) => Buffer.from(one));
  const places = [world.place, `${world.place}.wal`, world.published, world.spool, join(world.dir, 'tmp')];
  const out: string[] = [];
  for (const path of places.flatMap(filesIn)) {
    const bytes = readFileSync(path);
    for (const text of texts) if (bytes.includes(text)) out.push(`${path} still names ${text}, who was purged`);
  }
  return out;
}

function filesIn(path: string): string[] {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  const inner = readdirSync(path, { recursive: true }).map((name) => join(path, String(name)));
  return inner.filter((one) => statSync(one).isFile());
}
