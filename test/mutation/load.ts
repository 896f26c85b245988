import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../src', process.env.MUTATED_FOLDER ?? '.');

// Modules are loaded once for all changes. One that a test loads (a connector's verb) would count what runs at load time
// for the test, and a change of it, which is never loaded, for one that no test notices.
for (const name of readdirSync(ROOT, { recursive: true, encoding: 'utf8' })) {
  if (name.endsWith('.ts')) await import(join(ROOT, name));
}
