import folders from './folders.json' with { type: 'json' };

/** Folder of src → the tests that are about it. Tests of other folders run its code too, but are slow and about theirs. */
export const FOLDERS = folders;

export const reportOf = (folder) => `.mutation/${folder.replaceAll('/', '-')}`;
