/** People for the suppression list, by their plain ids. */
export const persons = (...texts: readonly string[]) => texts.map((text) => ({ text, hashKey: undefined }));
