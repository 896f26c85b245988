import type { Storage } from './storage.ts';

/** A folder of a storage as a storage of its own. Its paths are from that folder; '' is the folder itself. */
export type StorageFolder = Pick<
  Storage,
  'address' | 'read' | 'list' | 'create' | 'write' | 'putFile' | 'localFile' | 'remove' | 'eraseAllBut'
>;

/** A path in a folder, from the root of the storage. */
export const fromRoot = (folder: string, path: string): string => (path === '' ? folder : `${folder}/${path}`);

/** A path below a folder, from that folder. */
export const inFolder = (folder: string, path: string): string => path.slice(folder.length + 1);

export function folderOf(storage: Storage, name: string): StorageFolder {
  const outer = (path: string) => fromRoot(name, path);
  return {
    address: `${storage.address}/${name}`,
    read: (path) => storage.read(outer(path)),
    async *list(folder, after) {
      const objects = storage.list(outer(folder), after === undefined ? undefined : outer(after));
      for await (const object of objects) yield { ...object, path: inFolder(name, object.path) };
    },
    create: (path, text) => storage.create(outer(path), text),
    write: (path, text) => storage.write(outer(path), text),
    putFile: (file, path) => storage.putFile(file, outer(path)),
    localFile: (path, copy) => storage.localFile(outer(path), copy),
    remove: (paths) => storage.remove(paths.map(outer)),
    eraseAllBut: (folder, isKept, uploadsBegunBefore) =>
      storage.eraseAllBut(
        outer(folder),
        ({ path, modified }) => isKept({ path: inFolder(name, path), modified }),
        uploadsBegunBefore,
      ),
  };
}
