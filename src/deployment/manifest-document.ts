import { DiagnosticList, openValue } from '../document/document.js';
import type { Field } from '../document/field.js';
import { type Manifest, getTitle } from '../kube/manifests.js';

/** Returns the text of a line of a file. */
export type LineAt = (file: string, line: number) => string;

/** An object being read, with its diagnostics. */
export interface ManifestDocument {
  manifest: Manifest;
  title: string;
  root: Field;
  diagnostics: DiagnosticList;
}

/**
 * Opens an object for reading. Scalars that YAML reads as another type, such as `n` or an all-digit commit, are read
 * as strings with a warning: `lineAt` returns their lines.
 */
export function openManifest(manifest: Manifest, lineAt: LineAt): ManifestDocument {
  const diagnostics = new DiagnosticList();
  const { file } = manifest;
  const title = getTitle(manifest);
  const root = openValue(manifest.load(), {
    name: file,
    subject: title,
    diagnostics,
    findPlace: (path) => {
      const line = manifest.lineOf(path);
      return line === undefined ? {} : { line };
    },
    textAsWritten: (path) => {
      const line = manifest.lineOf(path);
      const key = path.at(-1);
      if (line === undefined || typeof key !== 'string') return undefined;
      const pattern = new RegExp(`(?:^|[\\s{,])["']?${key}["']?\\s*:\\s*([\\w.+-]+)\\s*(?:$|[,}#])`, 'm');
      return pattern.exec(lineAt(file, line))?.[1];
    },
  });
  return { manifest, title, root, diagnostics };
}
