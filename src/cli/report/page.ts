import { VERSION } from '../../base/version.ts';
import { writeNamedFile } from '../../fs/named-file.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type Html, html } from './html.ts';

/** A page in one file, without a script or a request. */
export function pageOf(title: string, style: Html, content: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="generator" content="dfinery-elt ${VERSION}">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
${content}
</main>
</body>
</html>
`.text;
}

/** Writes a page to stdout if `output` is `-`, else to a file, which messages call `subject`. */
export async function writePage(page: string, output: string, subject: string, terminal: Terminal, mode?: number) {
  if (output === '-') for (const line of page.trimEnd().split('\n')) terminal.print(line);
  else await writeNamedFile(output, page, `${subject} ${output}`, 'page', mode);
}
