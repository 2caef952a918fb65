import { encodeGoJson } from '../document/go-json.js';
import { isCsv } from '../model/csv.js';
import { readFirstDocument } from './manifest.js';
import { isKubernetesObject } from './parse.js';
import type { BundleFile, BundleFiles } from './read.js';

/** Maximum bytes of manifests that are not reduced. */
const maxKept = 32 * 1024 * 1024;
const smallFile = 64 * 1024;

/**
 * Reduces large objects of a large bundle to apiVersion, kind and metadata, except ClusterServiceVersions and custom
 * resource definitions, for readers that keep every object in memory. Lines within reduced objects are lost.
 */
export function withoutBodies(files: BundleFiles): BundleFiles {
  const size = files.manifests.reduce((sum, { content }) => sum + content.length, 0);
  return size <= maxKept ? files : { ...files, manifests: files.manifests.map(withoutBody) };
}

function withoutBody(file: BundleFile): BundleFile {
  if (file.content.length <= smallFile) return file;
  const { value = null } = readFirstDocument(file.content);
  if (!isKubernetesObject(value) || isCsv(value) || value['kind'] === 'CustomResourceDefinition') return file;
  const { apiVersion = null, kind = null, metadata = null } = value;
  return { name: file.name, content: Buffer.from(encodeGoJson({ apiVersion, kind, metadata })) };
}
