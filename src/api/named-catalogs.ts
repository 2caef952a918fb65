import { withOpen } from '../core/concurrency.js';
import { addContext } from '../core/diagnostics-error.js';
import { readPackageContent } from '../catalog/package-content.js';
import { invalidValue, OpmateError, redactUrls, UsageError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import type { PackageContent } from '../graph/resolve-content.js';
import type { ResolveCatalog } from '../graph/resolve.js';
import { subdomainFault } from '../kube/names.js';
import { parseCatalogPlace } from '../source/parse-place.js';
import { openPlace } from '../source/resolve-place.js';
import type { Session } from '../source/session.js';
import { requireCatalog } from './open-catalog.js';

/** A catalog as it is named on the command line. */
export interface NamedCatalog {
  name: string;
  reference: string;
  priority: number;
  labels: Record<string, string>;
}

/** The label with its name that every catalog has on a cluster. */
const nameLabel = 'olm.operatorframework.io/metadata.name';
const namePattern = /^([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)=(.+)$/s;

/**
 * Reads `REF` or `NAME=REF[,priority=N][,labels=KEY=VALUE,…]`. A catalog without a name has its reference for one.
 * Throws UsageError.
 */
export function parseNamedCatalog(text: string): NamedCatalog {
  const [whole = '', ...settings] = text.split(/,(?=(?:priority|labels)=)/);
  const [, input, after] = namePattern.exec(whole) ?? [];
  const reference = after ?? whole;
  const name = input ?? redactUrls(reference);
  const fault = (problem: string): UsageError =>
    invalidValue('options.catalog', redactUrls(text), problem, {
      hint: 'use REF, or NAME=REF,priority=N,labels=KEY=VALUE,…',
    });
  if (reference === '') throw fault('no catalog is named');
  const labels: Record<string, string> = { [nameLabel]: name };
  let priority = 0;
  for (const setting of settings) {
    const value = setting.slice(setting.indexOf('=') + 1);
    if (setting.startsWith('priority=')) {
      priority = Number(value);
      if (!/^-?\d{1,10}$/.test(value) || (priority | 0) !== priority) {
        throw fault(`priority ${quoteGo(value)} is not a number of 32 bits`);
      }
      continue;
    }
    for (const label of value.split(',')) {
      const [, key, content] = /^\s*([^=\s]+)=([^=\s]*)\s*$/.exec(label) ?? [];
      if (key === undefined || content === undefined || key === '__proto__') {
        throw fault(`label ${quoteGo(label)} is not KEY=VALUE`);
      }
      labels[key] = content;
    }
  }
  return { name, reference, priority, labels };
}

/**
 * Reads one package of a catalog; of a served or published catalog nothing else is read. Throws OpmateError, USAGE for a
 * name that no package of OLM v1 can have.
 */
export async function readNamedCatalog(
  { name, reference, priority }: NamedCatalog,
  packageName: string,
  session: Session,
): Promise<ResolveCatalog> {
  if (subdomainFault(packageName) !== undefined) {
    throw new UsageError(`package ${quoteGo(packageName)}: not a DNS-1123 subdomain of up to 253 characters`);
  }
  try {
    return { name, priority, content: await readContent(reference, packageName, session) };
  } catch (error) {
    throw inCatalog(error, name);
  }
}

function inCatalog(error: unknown, name: string): unknown {
  if (!(error instanceof OpmateError) || error.code === 'CANCELLED' || error.file !== undefined) return error;
  return error.subject === name ? error : addContext(error, { subject: `catalog ${name}` });
}

async function readContent(
  reference: string,
  packageName: string,
  session: Session,
): Promise<PackageContent> {
  const place = await parseCatalogPlace(reference, session);
  const opened = await openPlace(
    place.kind === 'served' || place.kind === 'directory' ? { ...place, package: packageName } : place,
    session,
  );
  return withOpen(requireCatalog(opened, reference), ({ catalog }) =>
    readPackageContent(catalog, packageName, session),
  );
}
