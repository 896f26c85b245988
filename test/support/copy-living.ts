import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

/** Copies a folder in which others still work, file by file: what is removed meanwhile is not there. Folders get mode 0700, files keep their times. */
export function copyLiving(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    try {
      if (entry.isDirectory()) copyLiving(source, target);
      else {
        const { atime, mtime } = statSync(source);
        copyFileSync(source, target);
        utimesSync(target, atime, mtime);
      }
    } catch (error) {
      if (existsSync(source)) throw error;
    }
  }
}
