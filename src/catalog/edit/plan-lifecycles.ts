import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { createFault, type Diagnostic } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { describeMissing, suggestName } from '../../core/suggest.js';
import { schemas } from '../../model/declarative-config.js';
import { lifecycleSchema } from '../../model/lifecycle.js';
import type { LifecycleBlob } from '../lifecycle/read-lifecycles.js';
import { checkPackagePath } from '../directory-writer.js';
import type { BlobEdit } from './blob-edits.js';
import type { BlobPlace, EditableCatalog } from './editable-catalog.js';
import type { EditPlan } from './find-named.js';

/** File of a lifecycle blob in the directory of its package. (Source: operator-foundry.) */
const fileName = 'lifecycle.json';

/**
 * Plans to add lifecycle blobs beside their packages. A blob that is there stays if equal, is replaced with `overwrite`, and
 * is an error else. Throws DiagnosticsError with all packages that the catalog lacks, and all blobs that differ.
 */
export async function planLifecycles(
  catalog: EditableCatalog,
  blobs: ReadonlyMap<string, LifecycleBlob>,
  { overwrite = false }: { overwrite?: boolean | undefined } = {},
): Promise<EditPlan<BlobEdit>> {
  const plan: EditPlan<BlobEdit> = { edits: [], changes: [] };
  const faults: Diagnostic[] = [];
  const places = catalog.files.flatMap((file) => file.blobs);
  for (const [name, { value, origin }] of blobs) {
    const owner = places.find((place) => place.schema === schemas.package && place.package === name);
    const existing = places.find((place) => place.schema === lifecycleSchema && place.package === name);
    const subject = { subject: catalog.name, file: origin.file };
    if (owner === undefined) {
      const known = catalog.facts.packages.map((item) => item.name);
      const hint = suggestName('package', name, known);
      faults.push(createFault('not-found', describeMissing('package', name), { ...subject, hint }));
    } else if (existing === undefined) {
      const item = { kind: 'other' as const, meta: { value } };
      plan.edits.push({ kind: 'create', name: getFileName(owner), item });
      plan.changes.push(`package ${quoteGo(name)}: added lifecycle`);
    } else if (!isDeepStrictEqual(await catalog.catalog.read(existing.origin), value)) {
      if (!overwrite) {
        const hint = 'replace it, or keep it and remove the file of its package';
        const problem = `package ${quoteGo(name)} has another lifecycle, in ${existing.origin.file}`;
        faults.push(createFault('lifecycle-differs', problem, { ...subject, hint }));
      }
      plan.edits.push({ kind: 'change', blob: existing, change: () => value });
      plan.changes.push(`package ${quoteGo(name)}: replaced lifecycle`);
    }
  }
  if (faults.length > 0) throw new DiagnosticsError(faults);
  return plan;
}

function getFileName({ package: name, file }: BlobPlace): string {
  const directory = path.posix.dirname(file.name);
  if (directory !== '.') return `${directory}/${fileName}`;
  checkPackagePath(name);
  return `${name}/${fileName}`;
}
