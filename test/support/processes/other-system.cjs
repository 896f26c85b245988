// Preloaded into a process (node -r): SYSTEM=windows lets it see what Windows does with open files, SYSTEM=macos that there is
// no /proc, SYSTEM=share that a file system keeps no modes. It is like these systems in nothing else.
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');

const system = process.env.SYSTEM;
const refused = (code, call, path) => Object.assign(new Error(`${code}: refused, ${call} '${path}'`), { code, path });
const refusing = (name, why) => {
  const [atOnce, promised] = [fs[`${name}Sync`], fs.promises[name]];
  fs[`${name}Sync`] = (...given) => {
    const error = why(...given);
    if (error !== undefined) throw error;
    return atOnce(...given);
  };
  fs.promises[name] = async (...given) => {
    const error = why(...given);
    if (error !== undefined) throw error;
    return await promised(...given);
  };
};
const isOpenHere = (path) =>
  fs.readdirSync('/proc/self/fd').some((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      return false;
    }
  });

if (system === 'windows') {
  // The bindings of DuckDB are chosen by the platform when they are loaded.
  const load = require('node:module')._extensions['.node'];
  require('node:module')._extensions['.node'] = (...given) => {
    load(...given);
    Object.defineProperty(process, 'platform', { value: 'win32' });
  };
  const open = fs.promises.open;
  fs.promises.open = async (path, flags, ...more) => {
    const file = await open(path, flags, ...more);
    const isRead = flags === undefined || flags === 'r';
    if (isRead) file.sync = () => Promise.reject(refused('EPERM', 'fsync', path));
    return file;
  };
  refusing('rename', (_, to) =>
    isOpenHere(
      fs.realpathSync(require('node:path').dirname(to)) + require('node:path').sep + require('node:path').basename(to),
    )
      ? refused('EPERM', 'rename', to)
      : undefined,
  );
}
if (system === 'macos') {
  const why = (path) => (String(path).startsWith('/proc/') ? refused('ENOENT', 'open', path) : undefined);
  refusing('readFile', why);
  refusing('readlink', why);
}
if (system === 'share') {
  refusing('chmod', (path) => refused('EPERM', 'chmod', path));
  for (const name of ['statSync', 'lstatSync', 'fstatSync']) {
    const stat = fs[name];
    fs[name] = (...given) => {
      const file = stat(...given);
      if (typeof file?.mode === 'number' && (file.isFile() || file.isDirectory())) file.mode |= 0o777;
      return file;
    };
  }
}
syncBuiltinESMExports();
