import path from 'node:path';
import { subdomainFault } from '../../kube/names.js';

const maxLength = 253;

/** Returns the problem of a catalog name that is not a DNS subdomain (RFC 1123); undefined for a valid one. */
export function findCatalogNameFault(name: string): string | undefined {
  if (name.length > maxLength) return `must be no more than ${maxLength} characters`;
  if (subdomainFault(name) === undefined) return undefined;
  return (
    'must be a DNS-1123 subdomain: lower case letters, digits, "-" and ".", ' +
    'each part beginning and ending with a letter or digit'
  );
}

/** Returns the default name of a catalog: the base name of its directory, file or image. */
export function getDefaultCatalogName(reference: string): string {
  const base = path.basename(reference.replace(/@.*$/, '').replace(/:[^/:]*$/, ''));
  const name = base
    .replace(/\.(db|tar|json|ya?ml)$/, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return name === '' ? 'catalog' : name.slice(0, 63).replace(/-+$/, '');
}
