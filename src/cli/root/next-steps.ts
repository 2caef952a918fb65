import { open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { withOpen } from '../../core/concurrency.js';
import { shellWord } from '../printable.js';

/** Maximum number of entries of a directory that are looked at, and bytes of a file. */
const maxEntries = 200;
const maxBytes = 4096;

const publicCatalog = 'quay.io/operatorhubio/catalog:latest';

/** Returns commands that fit what lies in a directory, each with its purpose; the first ones fit best. */
export async function suggestNextSteps(directory: string): Promise<[purpose: string, line: string][]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  const names = new Set(entries.slice(0, maxEntries).map(({ name }) => name));
  const documents = entries
    .slice(0, maxEntries)
    .flatMap((entry) => (entry.isFile() && /\.(?:json|ya?ml)$/.test(entry.name) ? [entry.name] : []))
    .sort();
  if (names.has('manifests') && names.has('metadata')) {
    return [
      ['Check this bundle', 'opmate bundle validate .'],
      ['Show what installing it applies', 'opmate bundle render . --install-namespace demo'],
    ];
  }
  if (names.has('operators')) {
    return [
      ['Check this repository of operators', 'opmate repo check'],
      ['Render its catalogs', 'opmate repo render'],
    ];
  }
  for (const name of documents) {
    if (!(await readStart(path.join(directory, name))).includes('ImageSetConfiguration')) continue;
    const line = `opmate mirror plan -c ${shellWord(name)} docker://registry.example.com/mirror`;
    return [['Show what this image set mirrors', line]];
  }
  for (const name of documents) {
    if (!/olm\.(?:package|channel|bundle)/.test(await readStart(path.join(directory, name)))) continue;
    return [
      ['Check this catalog', 'opmate catalog doctor .'],
      ['Show it in the browser', 'opmate view . --open'],
    ];
  }
  return [
    ['List the packages of a published catalog', `opmate list packages ${publicCatalog}`],
    ['Begin a package', 'opmate init demo --default-channel stable > demo.json'],
  ];
}

async function readStart(file: string): Promise<string> {
  const buffer = Buffer.alloc(maxBytes);
  try {
    return await withOpen(open(file, 'r'), async (handle) => {
      const { bytesRead } = await handle.read(buffer, 0, maxBytes, 0);
      return buffer.toString('latin1', 0, bytesRead);
    });
  } catch {
    return '';
  }
}
