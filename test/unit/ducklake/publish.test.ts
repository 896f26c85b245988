import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HOUR_MS } from '../../../src/base/durations.ts';
import { transientError } from '../../../src/base/errors.ts';
import { literal } from '../../../src/cells/types/sql.ts';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { publish } from '../../../src/targets/copies/publish.ts';
import { Catalog, COPIED } from '../../../src/targets/ducklake/catalog.ts';
import { ducklake } from '../../../src/targets/ducklake/target.ts';
import { DuckLakeFixture } from '../../support/targets/ducklake.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DuckLakeFixture;
let copy: string;
beforeEach(async () => {
  fixture = new DuckLakeFixture();
  copy = join(fixture.dir, 'copy.ducklake');
  await fixture.store([fixture.windowOf('2026-01-01', { id: 'a', df_unified_id: 'erna' }, { id: 'b' })]);
});
afterEach(() => fixture.close());

const refused = (text: string) => ({ exitCode: 2, message: expect.stringContaining(text) });
const publishFrom = (file: string, to = copy) =>
  COPIED.withFile({ ...fixture.lakeOptions, file }, (engine) => publish(COPIED, engine, to));
const purge = async (forgetCopies: readonly string[] = []) =>
  (await ducklake.people()).purge(
    fixture.place,
    { column: 'df_unified_id', ids: ['erna'] },
    { ...fixture.lakeOptions, onFound: async () => {}, forgetCopies },
  );

/** A copy whose only file of a day was replaced since by a run that was killed before it would publish. */
async function withOldCopy() {
  let now = Date.now();
  const clock = { ...fixture.targetOptions.clock, now: () => now };
  const stored = (n: string) => fixture.store([fixture.windowOf('2026-01-02', { id: 'c', n })], { clock });
  await stored('1');
  await publishFrom(fixture.place);
  await stored('2');
  /** Opens the lake for loading once the retention of what was replaced is over, also by the clock of the disk. */
  const reopened = async () => {
    now += 30 * HOUR_MS;
    for (const path of fixture.dataFiles()) {
      const file = join(fixture.data, 'main', path);
      const time = new Date(statSync(file).mtimeMs - 30 * HOUR_MS);
      utimesSync(file, time, time);
    }
    await (await fixture.openLake({ clock })).close();
  };
  return { stored, reopened };
}

describe('a copy of a catalog for readers', () => {
  it('is the catalog alone, names the data by absolute paths, and reads them', async () => {
    await publishFrom(fixture.place);
    expect(statSync(copy).size).toBeLessThan(3_000_000);
    const files = () => query(copy, 'SELECT path FROM ducklake_data_file WHERE end_snapshot IS NULL ORDER BY 1');
    expect(await files()).toHaveLength(1);
    expect(await query(copy, "SELECT value FROM ducklake_metadata WHERE key = 'data_path'")).toEqual([
      { value: `${fixture.data}/` },
    ]);
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'c' })]);
    await publishFrom(fixture.place);
    expect(await files()).toHaveLength(2);
    expect(existsSync(join(fixture.dir, '.copy.ducklake.publishing'))).toBe(false);
  });

  it('is not loaded itself, and replaces only a copy of this catalog', async () => {
    await publishFrom(fixture.place);
    const loaded = fixture.store([fixture.windowOf('2026-01-02', { id: 'c' })], { place: copy });
    await expect(loaded).rejects.toMatchObject(refused('is a copy for readers'));
    const other = join(fixture.dir, 'other');
    writeFileSync(other, 'mine');
    await expect(publishFrom(fixture.place, other)).rejects.toMatchObject(
      refused('is not a copy that this program made of this catalog'),
    );
    expect(readFileSync(other, 'utf8')).toBe('mine');
    await expect(publishFrom(fixture.place, fixture.place)).rejects.toMatchObject(
      refused('is the file that is loaded'),
    );
    linkSync(copy, join(fixture.dir, 'second'));
    await expect(publishFrom(fixture.place)).rejects.toMatchObject(refused('hard link'));
  });

  it('is replaced at the target of a symbolic link', async () => {
    await publishFrom(fixture.place);
    const link = join(fixture.dir, 'link');
    symlinkSync(copy, link);
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'c' })]);
    await publishFrom(fixture.place, link);
    expect(await query(copy, 'SELECT count(*) AS n FROM ducklake_data_file')).toEqual([{ n: '2' }]);
  });

  it('is not replaced from a plain copy of the catalog', async () => {
    await publishFrom(fixture.place);
    const backup = join(fixture.dir, 'backup.ducklake');
    copyFileSync(fixture.place, backup);
    await expect(publishFrom(backup)).rejects.toMatchObject(
      refused('is not a copy that this program made of this catalog'),
    );
    await publishFrom(backup, join(fixture.dir, 'own.ducklake'));
    await publishFrom(fixture.place);
  });

  it('is published again before files go that it alone names; where it cannot be, they stay', async () => {
    const { stored, reopened } = await withOldCopy();
    const read = async () => {
      const files = await query(copy, 'SELECT path FROM ducklake_data_file WHERE end_snapshot IS NULL');
      return query(
        ':memory:',
        `FROM read_parquet([${files.map(({ path }) => literal(join(fixture.data, 'main/events', String(path)))).join(', ')}], union_by_name = true) SELECT n WHERE n IS NOT NULL`,
      );
    };
    expect(await read()).toEqual([{ n: '1' }]);
    await reopened();
    expect(await read()).toEqual([{ n: '2' }]);
    expect(fixture.dataFiles()).toHaveLength(2);
    await stored('3');
    writeFileSync(copy, 'mine');
    await reopened();
    expect(readFileSync(copy, 'utf8')).toBe('mine');
    expect(fixture.dataFiles()).toHaveLength(3);
    rmSync(copy);
    await reopened();
    expect(fixture.dataFiles()).toHaveLength(2);
  });

  it.each(['a link to the catalog', 'a catalog that was restored'])(
    'is none of %s, which is opened all the same; files that a copy needs stay',
    async (which) => {
      const { reopened } = await withOldCopy();
      if (which === 'a link to the catalog') {
        rmSync(copy);
        symlinkSync(fixture.place, copy);
      } else {
        copyFileSync(fixture.place, `${fixture.place}.restored`);
        renameSync(`${fixture.place}.restored`, fixture.place);
      }
      await reopened();
      const isKept = which !== 'a link to the catalog';
      expect(fixture.dataFiles()).toHaveLength(isKept ? 3 : 2);
      const warned = fixture.log.filter(({ level }) => level === 'warn').map(({ fields }) => String(fields?.error));
      expect(warned).toEqual(isKept ? [expect.stringContaining('give --publish once')] : []);
    },
  );

  it.each(['before it rewrites the catalog', 'after it has erased files'])(
    'names only files that are there, whatever ends a purge %s',
    async (when) => {
      await publishFrom(fixture.place);
      const killed = transientError('killed');
      if (when === 'before it rewrites the catalog') {
        vi.spyOn(Catalog.prototype, 'rewrite').mockRejectedValueOnce(killed);
      } else {
        const erase = DiskStorage.prototype.eraseAllBut;
        vi.spyOn(DiskStorage.prototype, 'eraseAllBut').mockImplementationOnce(async function (
          this: DiskStorage,
          ...all
        ) {
          await erase.apply(this, all);
          throw killed;
        });
      }
      await expect(purge()).rejects.toThrow('killed');
      const clock = { ...fixture.targetOptions.clock, now: () => Date.now() + 30 * 3_600_000 };
      await (await fixture.openLake({ clock })).close();
      const files = await query(copy, 'SELECT path FROM ducklake_data_file WHERE end_snapshot IS NULL');
      expect(files).toHaveLength(1);
      for (const { path } of files) expect(fixture.dataFiles()).toContain(`events/${path}`);
      expect(await purge()).toMatchObject({ unreached: [] });
    },
  );

  it('is published before a purge erases files, also beside one that cannot be replaced', async () => {
    const blocked = join(fixture.dir, 'blocked.ducklake');
    await publishFrom(fixture.place, blocked);
    await publishFrom(fixture.place);
    linkSync(blocked, join(fixture.dir, 'second'));
    vi.spyOn(DiskStorage.prototype, 'eraseAllBut').mockRejectedValueOnce(transientError('killed'));
    await expect(purge()).rejects.toThrow('killed');
    const snapshots = (file: string) => query(file, 'SELECT max(snapshot_id) AS latest FROM ducklake_snapshot');
    expect(await snapshots(copy)).toEqual(await snapshots(fixture.place));
    expect(await snapshots(blocked)).not.toEqual(await snapshots(fixture.place));
  });

  it('is published again by a purge, also after the catalog was rewritten', async () => {
    await publishFrom(fixture.place);
    for (let times = 0; times < 2; times++) {
      expect(await purge()).toMatchObject({ unreached: [] });
      expect(await query(copy, 'SELECT count(*) AS n FROM ducklake_snapshot')).toEqual([{ n: '1' }]);
    }
    const [{ path }] = await query(copy, 'SELECT path FROM ducklake_data_file');
    expect(existsSync(join(fixture.data, 'main', 'events', String(path)))).toBe(true);
  });

  it('is named by a purge if it is missing, until --forget-copy', async () => {
    await publishFrom(fixture.place);
    rmSync(copy);
    expect(await purge()).toMatchObject({ unreached: [expect.stringContaining('--forget-copy')] });
    expect(await purge()).toMatchObject({ unreached: [expect.stringContaining(copy)] });
    expect(await purge([copy])).toMatchObject({ unreached: [] });
    expect(await purge()).toMatchObject({ unreached: [] });
  });

  it('is named by a purge where a folder has taken its place, with what to do', async () => {
    await publishFrom(fixture.place);
    rmSync(copy);
    mkdirSync(copy);
    const [sentence] = (await purge()).unreached;
    expect(sentence).toContain(`${copy} exists and is not a copy that this program made of this catalog`);
    expect(sentence).toContain('it is no file. Move it elsewhere');
    expect(sentence).toContain('a purge is told of one that was moved by --forget-copy with this path');
    rmSync(copy, { recursive: true });
    expect(await purge([copy])).toMatchObject({ unreached: [] });
  });

  it('is named itself where a file has taken the place of its folder, also by a purge, until --forget-copy', async () => {
    const folder = join(fixture.dir, 'folder');
    copy = join(folder, 'copy.ducklake');
    mkdirSync(folder);
    await publishFrom(fixture.place);
    rmSync(folder, { recursive: true });
    writeFileSync(folder, 'mine');
    await expect(publishFrom(fixture.place)).rejects.toMatchObject(
      refused(`The copy for readers ${copy} cannot be written (ENOTDIR)`),
    );
    expect(await purge()).toMatchObject({ unreached: [expect.stringContaining(`${copy} is not there`)] });
    expect(await purge([copy])).toMatchObject({ unreached: [] });
    expect(readFileSync(folder, 'utf8')).toBe('mine');
  });
});
