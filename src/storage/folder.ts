import type { Storage } from './storage.ts';

/** A folder of a storage as a storage of its own: its paths are from that folder, '' is the folder itself. */
export type StorageFolder = Pick<
  Storage,
  'address' | 'read' | 'list' | 'create' | 'write' | 'putFile' | 'localFile' | 'remove' | 'eraseAllBut'
>;

export function folderOf(storage: Storage, name: string): StorageFolder {
  const outer = (path: string) => (path === '' ? name : `${name}/${path}`);
  const inner = (path: string) => path.slice(name.length + 1);
  return {
    address: `${storage.address}/${name}`,
    read: (path) => storage.read(outer(path)),
    async *list(folder, after) {
      const objects = storage.list(outer(folder), after === undefined ? undefined : outer(after));
      for await (const object of objects) yield { ...object, path: inner(object.path) };
    },
    create: (path, text) => storage.create(outer(path), text),
    write: (path, text) => storage.write(outer(path), text),
    putFile: (file, path) => storage.putFile(file, outer(path)),
    localFile: (path, copy) => storage.localFile(outer(path), copy),
    remove: (paths) => storage.remove(paths.map(outer)),
    eraseAllBut: (folder, isKept, until) =>
      storage.eraseAllBut(outer(folder), ({ path, modified }) => isKept({ path: inner(path), modified }), until),
  };
}
