// The packages that a bundle holds: their licences, which must go with every copy, and a bill of materials.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The packages of which anything is in these outputs of esbuild, in order of their folders. */
export function bundledPackages(outputs) {
  const used = outputs.flatMap(({ inputs }) =>
    Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0),
  );
  const folders = used.flatMap(([path]) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  const packages = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
    if (license === undefined) throw new Error(`${name} names no licence`);
    const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
    return { name, version, license, text: texts.join('\n\n') || `Licence: ${license}` };
  });
  // Two packages may each bring the same version of a third.
  return [...new Map(packages.map((one) => [`${one.name}@${one.version}`, one])).values()];
}

const LINE = `\n\n${'-'.repeat(80)}\n\n`;

/** The text of THIRD_PARTY_NOTICES. */
export const noticesOf = (packages) =>
  `This program holds these packages.${LINE}${packages
    .map(({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}`)
    .join(LINE)}\n`;

/** The components of a bill of materials in CycloneDX. */
export const componentsOf = (packages) =>
  packages.map(({ name, version, license }) => ({
    type: 'library',
    'bom-ref': `${name}@${version} (bundled)`,
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    licenses: [{ license: { id: license } }],
  }));
