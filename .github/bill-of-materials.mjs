// The bill of materials of the installed package on stdout: what npm lists, and what is bundled in dist.
//   npm sbom --sbom-format cyclonedx | node bill-of-materials.mjs node_modules/dfinery-elt/dist/bundled.cdx.json
import { readFileSync } from 'node:fs';

const bill = JSON.parse(readFileSync(0, 'utf8'));
bill.components.push(...JSON.parse(readFileSync(process.argv[2], 'utf8')));
process.stdout.write(`${JSON.stringify(bill, undefined, 2)}\n`);
